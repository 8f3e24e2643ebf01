#include "runtime/client/stream_breakdown.h"

#include <algorithm>
#include <utility>

namespace patchbay::client {

std::array<StageShare, 5> BreakdownOf(const StreamStats& stats) {
  const StageTotals& totals = stats.stages;
  const std::array<std::pair<std::string_view, std::uint64_t>, 4> stages{
      {{"storage", totals.storage_us},
       {"decode", totals.decode_us},
       {"transform", totals.transform_us},
       {"transfer", totals.transfer_us}}};
  std::array<StageShare, 5> shares;
  const auto batches = static_cast<double>(std::max<std::uint64_t>(stats.batches, 1));
  // The stages also count shards of batches not taken yet.
  const double made = static_cast<double>(std::max<std::uint64_t>(totals.patches, 1));
  const double batch_patches = static_cast<double>(stats.patches) / batches;
  const double all_us = static_cast<double>(std::max<std::uint64_t>(totals.Sum(), 1));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto us = static_cast<double>(stages[i].second);
    shares[i] = {stages[i].first, stats.stall_fraction * us / all_us,
                 us * 1e-6 / made * batch_patches};
  }
  const bool is_known = stats.batches > 1;
  shares[4] = {"trainer", is_known ? 1 - stats.stall_fraction : 0,
               std::max(stats.wall_s - stats.wait_s, 0.0) / batches};
  return shares;
}

}  // namespace patchbay::client
