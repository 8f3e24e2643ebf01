#include "scheduler/policy/affinity.h"

#include <algorithm>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

std::size_t ChooseKin(std::span<const Kinship> head, std::uint32_t passed_over) {
  if (head.empty() || passed_over >= kMaxPassedOver) return 0;
  return static_cast<std::size_t>(std::max_element(head.begin(), head.end()) - head.begin());
}

bool StaysEven(std::uint32_t load, std::span<const std::uint32_t> smaller, std::size_t waiting) {
  std::uint64_t missing = 0;
  for (const std::uint32_t other : smaller) missing += other < load ? load - other : 0;
  return missing < waiting;
}

StatusOr<ImageRuns> ImageRuns::Of(std::span<const Run> runs, std::uint64_t patches) {
  const auto refuse = [](const char* cause) {
    return absl::InvalidArgumentError(StrCat("read stream geometry: image runs: ", cause));
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

std::optional<std::uint64_t> ImageRuns::ImageOf(std::uint64_t ordinal) const {
  if (ordinal >= patches_) return std::nullopt;
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), ordinal,
                       [](std::uint64_t at, const Start& start) { return at < start.ordinal; });
  const Start& start = *std::prev(after);
  return start.image + (ordinal - start.ordinal) / start.patches_per_image;
}

}  // namespace patchbay::scheduler
