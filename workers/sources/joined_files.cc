#include "workers/sources/joined_files.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

class JoinedBytes final : public zarr::StoredBytes {
 public:
  explicit JoinedBytes(StoredParts parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) {
      ends_.push_back(size_bytes() + part->size_bytes());
      stamp_ += StrCat(part->stamp(), " ");
    }
  }

  std::uint64_t size_bytes() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::string_view stamp() const override { return stamp_; }

  Status Read(std::uint64_t offset, std::span<std::byte> out,
              std::string_view name) const override {
    while (!out.empty()) {
      const auto i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) -
                                              ends_.begin());
      if (i == ends_.size()) return DataLoss("read: ", name, ": past the end");
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), ends_[i] - offset));
      const std::uint64_t begin = ends_[i] - parts_[i]->size_bytes();
      PB_RETURN_IF_ERROR(parts_[i]->Read(offset - begin, out.first(size), name));
      out = out.subspan(size);
      offset += size;
    }
    return absl::OkStatus();
  }

 private:
  const StoredParts parts_;
  std::vector<std::uint64_t> ends_;
  std::string stamp_;
};

}  // namespace

std::shared_ptr<const zarr::StoredBytes> Join(StoredParts parts) {
  if (parts.size() == 1) return parts.front();
  return std::make_shared<JoinedBytes>(std::move(parts));
}

JoinedFiles::JoinedFiles(const Folders& allowed, const std::vector<std::string>& files,
                         const ReadCaches& caches) {
  for (const std::string& file : files) {
    stores_.push_back(std::make_unique<zarr::FileByteStore>(allowed, file, caches.files));
  }
}

StatusOr<StoredParts> JoinedFiles::OpenParts() {
  StoredParts parts;
  for (const auto& store : stores_) {
    PB_ASSIGN_OR_RETURN(auto part, store->Open(""));
    if (part == nullptr) return NotFound("a file of the slide is gone");
    parts.push_back(std::move(part));
  }
  return parts;
}

StatusOr<std::shared_ptr<const zarr::StoredBytes>> JoinedFiles::Open(std::string_view) {
  StatusOr<StoredParts> parts = OpenParts();
  if (absl::IsNotFound(parts.status())) return std::shared_ptr<const zarr::StoredBytes>();
  PB_RETURN_IF_ERROR(parts.status());
  return Join(*std::move(parts));
}

StatusOr<std::vector<std::string>> JoinedFiles::List(std::string_view prefix) {
  return stores_.front()->List(prefix);
}

std::string JoinedFiles::NameOf(std::string_view key) const { return stores_.front()->NameOf(key); }

}  // namespace patchbay::workers
