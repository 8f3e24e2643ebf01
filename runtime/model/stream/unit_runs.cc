#include "runtime/model/stream/unit_runs.h"

#include <algorithm>
#include <iterator>

#include "runtime/model/stream/limits.h"

namespace patchbay {

StatusOr<UnitRuns> UnitRuns::Of(std::span<const Run> runs, std::uint32_t global_batch) {
  const auto refuse = [](std::string_view cause) { return InvalidArgument("cut units: ", cause); };
  if (global_batch == 0) return refuse("a batch has no patches");
  if (runs.size() > kMaxUnitRuns) {
    return refuse(
        StrCat(runs.size(), " runs of units with equally many patches, at most ", kMaxUnitRuns));
  }
  UnitRuns table;
  auto starts = std::make_shared<std::vector<StreamUnit>>();
  StreamUnit& next = table.end_;
  for (const Run& run : runs) {
    if (run.patches_per_unit == 0 || run.units == 0) return refuse("one is empty");
    if (run.patches_per_unit > (kMaxPatchesPerEpoch - next.first_ordinal) / run.units) {
      return refuse("they have more patches than an epoch may have");
    }
    next.patches = run.patches_per_unit;
    next.batches = (run.patches_per_unit + global_batch - 1) / global_batch;
    starts->push_back(next);
    next.number += run.units;
    next.first_ordinal += run.units * next.patches;
    next.first_batch += run.units * next.batches;
    table.most_patches_ = std::max(table.most_patches_, next.patches);
  }
  if (!starts->empty()) table.starts_ = std::move(starts);
  return table;
}

StatusOr<UnitRuns> UnitRuns::OfCounts(std::span<const std::uint64_t> patches_of_unit,
                                      std::uint32_t global_batch) {
  std::vector<Run> runs;
  for (const std::uint64_t patches : patches_of_unit) {
    if (patches == 0) continue;
    if (!runs.empty() && runs.back().patches_per_unit == patches) {
      ++runs.back().units;
    } else {
      runs.push_back({patches, 1});
    }
  }
  return Of(runs, global_batch);
}

StreamUnit UnitRuns::Within(const StreamUnit& start, std::uint64_t index) const {
  StreamUnit unit = start;
  unit.number += index;
  unit.first_ordinal += index * start.patches;
  unit.first_batch += index * start.batches;
  return unit;
}

StreamUnit UnitRuns::At(std::uint64_t number) const {
  PB_CHECK(number < units());
  const auto after =
      std::upper_bound(starts_->begin(), starts_->end(), number,
                       [](std::uint64_t at, const StreamUnit& start) { return at < start.number; });
  const StreamUnit& start = *std::prev(after);
  return Within(start, number - start.number);
}

StreamUnit UnitRuns::OfBatch(std::uint64_t batch) const {
  PB_CHECK(batch < batches());
  const auto after = std::upper_bound(
      starts_->begin(), starts_->end(), batch,
      [](std::uint64_t at, const StreamUnit& start) { return at < start.first_batch; });
  const StreamUnit& start = *std::prev(after);
  return Within(start, (batch - start.first_batch) / start.batches);
}

std::vector<UnitRuns::Run> UnitRuns::runs() const {
  std::vector<Run> runs;
  if (empty()) return runs;
  for (std::size_t i = 0; i < starts_->size(); ++i) {
    const StreamUnit& start = (*starts_)[i];
    const std::uint64_t end = i + 1 < starts_->size() ? (*starts_)[i + 1].number : units();
    runs.push_back({start.patches, end - start.number});
  }
  return runs;
}

}  // namespace patchbay
