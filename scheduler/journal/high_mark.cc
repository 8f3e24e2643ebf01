#include "scheduler/journal/high_mark.h"

#include <charconv>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/hash.h"

namespace patchbay::scheduler {
namespace {

constexpr int kDigits = 20;  // of the largest 64-bit number
constexpr std::size_t kFileBytes = kDigits + 1;

Status Damaged(const std::string& path) {
  return absl::DataLossError(StrCat(
      "open journal: ", path, ": damaged: remove it to start with what the journal itself holds"));
}

}  // namespace

StatusOr<HighMark> HighMark::Open(const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd file,
                      OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
  HighMark mark(path, std::move(file));
  const auto text = ReadFile(Folders::OfThisProcess(), path, kFileBytes);
  if (!text.ok()) return absl::IsInvalidArgument(text.status()) ? Damaged(path) : text.status();
  if (text->empty()) return mark;
  const char* const end = text->data() + kDigits;
  const auto parsed = text->size() == kFileBytes
                          ? std::from_chars(text->data(), end, mark.sequence_)
                          : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (parsed.ec != std::errc() || parsed.ptr != end || text->back() != '\n') return Damaged(path);
  return mark;
}

Status HighMark::Set(std::uint64_t sequence) {
  char text[kFileBytes + 1];
  std::snprintf(text, sizeof(text), "%0*llu\n", kDigits, static_cast<unsigned long long>(sequence));
  PB_RETURN_IF_ERROR(WriteAt(file_.get(), 0, AsBytes(std::string_view(text, kFileBytes)), path_));
  sequence_ = sequence;
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
