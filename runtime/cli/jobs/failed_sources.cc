#include "runtime/cli/jobs/failed_sources.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::string_view kLabelStart = "slide ";
constexpr std::size_t kMaxShown = 20;  ///< failures on the terminal; the list in the file is whole

/// The slide number of a task's label: "slide 3 level 0 shard 1,2".
std::optional<std::int64_t> SlideOf(const std::string& label) {
  if (label.compare(0, kLabelStart.size(), kLabelStart) != 0) return std::nullopt;
  std::int64_t slide = 0;
  const char* begin = label.data() + kLabelStart.size();
  const auto [end, error] = std::from_chars(begin, label.data() + label.size(), slide);
  if (error != std::errc() || end == begin) return std::nullopt;
  return slide;
}

/// A reason that stands behind its source: "open image: SOURCE: cause" without the source.
std::string BehindSource(std::string reason, const std::string& source) {
  const std::size_t at = reason.find(StrCat(": ", source, ": "));
  return at == std::string::npos ? reason : reason.erase(at, source.size() + 2);
}

}  // namespace

std::string SourceName(const std::vector<std::string>& sources, std::int64_t slide) {
  if (slide >= 0 && static_cast<std::size_t>(slide) < sources.size()) {
    return sources[static_cast<std::size_t>(slide)];
  }
  return StrCat("slide ", slide);
}

std::map<std::int64_t, std::string> ReasonsOf(const protocol::JobRow& job) {
  std::map<std::int64_t, std::string> reasons;
  for (const protocol::FailedTask& task : job.failed) {
    const std::optional<std::int64_t> slide = SlideOf(task.label);
    if (slide.has_value()) reasons.emplace(*slide, task.outcome.message);
  }
  return reasons;
}

void SayFailed(Terminal& terminal, const SlideReport& report, std::size_t slides) {
  const std::vector<FailedSource>& failed = report.failed;
  // Without a file for the list all of it is here.
  const std::size_t shown = report.listed.ok() ? std::min(failed.size(), kMaxShown) : failed.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [source, reason] = failed[i];
    terminal.Note(StrCat("failed: ", source, ": ", BehindSource(reason, source)));
  }
  if (failed.size() > shown) terminal.Note(StrCat("... and ", failed.size() - shown, " more"));
  if (failed.empty()) return;
  terminal.Note(StrCat(failed.size(), " of ", slides, " failed; ",
                       report.listed.ok()
                           ? StrCat("the list is in ", report.out, "/failed.csv")
                           : StrCat("this list is in no file: ", MessageOf(report.listed))));
}

Status WriteFailedCsv(const std::string& out, const std::vector<FailedSource>& failed) {
  const std::string path = out + "/failed.csv";
  if (failed.empty()) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return FromErrno("remove", path, errno);
    return absl::OkStatus();
  }
  std::string text = "source,reason\r\n";
  for (const FailedSource& failure : failed) {
    text += CsvRow({CsvField(failure.source), CsvField(failure.reason)});
  }
  return WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text), 0600);
}

}  // namespace patchbay::cli
