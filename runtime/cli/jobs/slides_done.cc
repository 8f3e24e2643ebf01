#include "runtime/cli/jobs/slides_done.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxOutcomeBytes = 1 << 16;
/// Outcomes of unfinished slides that one look reads: slides finish one after another.
constexpr int kMaxUnfinishedRead = 64;

using Folder = std::filesystem::directory_iterator;

std::int64_t FilesIn(const std::string& folder) {
  std::error_code error;
  auto it = Folder(folder, error);
  std::int64_t files = 0;
  while (!error && it != Folder()) {
    if (it->path().extension() == ".json") ++files;
    it.increment(error);
  }
  return files;
}

/// Whether an ingest's file about a slide says what became of it; it is written first when the
/// slide is opened.
bool IsFinished(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, kMaxOutcomeBytes);
  if (!text.ok()) return false;
  const StatusOr<Json> outcome = ParseJson(*text, path);
  if (!outcome.ok()) return false;
  const StatusOr<std::string> digest = JsonString(*outcome, "digest", path);
  return digest.ok() && !digest->empty();
}

}  // namespace

std::int64_t SlidesDone::IngestsDone(const std::string& folder) {
  std::error_code error;
  auto it = Folder(folder, error);
  int unfinished = 0;
  while (!error && it != Folder() && unfinished < kMaxUnfinishedRead) {
    // "<run>.<slide>.json": a slide counts once, whichever run of the command finished it.
    const std::string slide = it->path().stem().extension().string();
    if (!slide.empty() && !ingested_.contains(slide)) {
      if (IsFinished(it->path().string())) {
        ingested_.insert(slide);
      } else {
        ++unfinished;
      }
    }
    it.increment(error);
  }
  return static_cast<std::int64_t>(ingested_.size());
}

std::string SlidesDone::Text(const SlideJobRequest& order) {
  std::error_code error;
  if (order.work.empty() || !std::filesystem::exists(order.work, error)) return seen_;
  const std::string slides = order.work + "/slides";
  const std::int64_t done = order.kind == "ingest"
                                ? IngestsDone(slides)
                                : FilesIn(slides) + FilesIn(order.work + "/failures");
  done_ = std::max(done_, std::min(done, order.slide_count));
  seen_ = StrCat("slides ", done_, "/", order.slide_count);
  return seen_;
}

std::string SlidesDone::TextOfDone(const SlideJobRequest& order) {
  if (order.work.empty()) return seen_;
  done_ = order.slide_count;
  return seen_ = StrCat("slides ", done_, "/", order.slide_count);
}

}  // namespace patchbay::cli
