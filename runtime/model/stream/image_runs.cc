#include "runtime/model/stream/image_runs.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

/// nullopt when they would be more than kMaxImageRuns.
std::optional<std::vector<ImageRuns::Run>> RunsOf(const std::vector<std::uint64_t>& counts) {
  std::vector<ImageRuns::Run> runs;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    if (!runs.empty() && runs.back().patches_per_image == count) {
      ++runs.back().images;
    } else if (runs.size() == kMaxImageRuns) {
      return std::nullopt;
    } else {
      runs.push_back({count, 1});
    }
  }
  return runs;
}

}  // namespace

StatusOr<ImageRuns> ImageRuns::Of(std::span<const Run> runs, std::uint64_t patches) {
  const auto refuse = [](const char* cause) {
    return InvalidArgument("read stream plan: image runs: ", cause);
  };
  if (runs.size() > kMaxImageRuns) return refuse("too many");
  ImageRuns table;
  Start next;
  for (const Run& run : runs) {
    if (run.patches_per_image == 0 || run.images == 0) return refuse("one is empty");
    if (run.patches_per_image > (patches - next.ordinal) / run.images) {
      return refuse("they have more patches than the epoch");
    }
    next.patches_per_image = run.patches_per_image;
    table.starts_.push_back(next);
    next.ordinal += run.patches_per_image * run.images;
    next.image += run.images;
  }
  if (next.ordinal != patches) return refuse("they have fewer patches than the epoch");
  table.patches_ = patches;
  return table;
}

ImageRuns ImageRuns::OfCounts(std::vector<std::uint64_t> patches_of_image) {
  std::vector<std::uint64_t>& counts = patches_of_image;
  std::erase(counts, std::uint64_t{0});
  std::optional<std::vector<Run>> runs = RunsOf(counts);
  while (!runs) {
    for (std::size_t i = 0; i + 1 < counts.size(); i += 2)
      counts[i / 2] = counts[i] + counts[i + 1];
    if (counts.size() % 2 != 0) counts[counts.size() / 2] = counts.back();
    counts.resize((counts.size() + 1) / 2);
    runs = RunsOf(counts);
  }
  const auto patches = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  return *Of(*runs, patches);
}

std::optional<std::uint64_t> ImageRuns::ImageOf(std::uint64_t ordinal) const {
  if (ordinal >= patches_) return std::nullopt;
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), ordinal,
                       [](std::uint64_t at, const Start& start) { return at < start.ordinal; });
  const Start& start = *std::prev(after);
  return start.image + (ordinal - start.ordinal) / start.patches_per_image;
}

std::vector<ImageRuns::Run> ImageRuns::runs() const {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    const std::uint64_t end = i + 1 < starts_.size() ? starts_[i + 1].ordinal : patches_;
    const std::uint64_t each = starts_[i].patches_per_image;
    runs.push_back({each, (end - starts_[i].ordinal) / each});
  }
  return runs;
}

}  // namespace patchbay
