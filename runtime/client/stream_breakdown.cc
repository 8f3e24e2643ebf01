#include "runtime/client/stream_breakdown.h"

#include <algorithm>

#include "runtime/core/clock.h"
#include "runtime/os/available_memory.h"

namespace patchbay::client {
namespace {

double Seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void StreamTimer::BeginWait() {
  const std::lock_guard lock(mu_);
  wait_begun_ns_ = SteadyNowNs();
  if (begun_ns_ == 0) begun_ns_ = wait_begun_ns_;
}

void StreamTimer::EndWait(bool got_batch) {
  const std::lock_guard lock(mu_);
  const std::int64_t now = SteadyNowNs();
  const std::int64_t waited = now - wait_begun_ns_;
  waited_ns_ += waited;
  if (first_got_ns_ != 0) waited_later_ns_ += waited;
  if (first_got_ns_ != 0 && got_batch) waits_.Add(waited);
  if (got_batch && first_got_ns_ == 0) first_got_ns_ = now;
}

void StreamTimer::Count(std::uint64_t patches, std::uint64_t size_bytes) {
  const std::lock_guard lock(mu_);
  ++counts_.batches;
  counts_.patches += patches;
  counts_.bytes += size_bytes;
}

void StreamTimer::Stop() {
  const std::lock_guard lock(mu_);
  if (stopped_ns_ == 0) stopped_ns_ = SteadyNowNs();
}

StreamStats StreamTimer::stats() const {
  const std::lock_guard lock(mu_);
  StreamStats stats = counts_;
  if (begun_ns_ == 0) return stats;
  const std::int64_t now = stopped_ns_ != 0 ? stopped_ns_ : SteadyNowNs();
  stats.wall_s = Seconds(now - begun_ns_);
  stats.wait_s = Seconds(waited_ns_);
  stats.wait_p50_s = Seconds(waits_.Percentile(50));
  stats.wait_p99_s = Seconds(waits_.Percentile(99));
  if (first_got_ns_ != 0) {
    stats.first_batch_s = Seconds(first_got_ns_ - begun_ns_);
    const std::int64_t later = now - first_got_ns_;
    if (later > 0) {
      stats.stall_fraction = static_cast<double>(waited_later_ns_) / static_cast<double>(later);
    }
  }
  return stats;
}

protocol::Heartbeat StreamTimer::HeartbeatWith(std::uint64_t progress) const {
  const std::lock_guard lock(mu_);
  const auto us = [this](int percent) {
    return static_cast<std::uint64_t>(waits_.Percentile(percent)) / 1000;
  };
  return {progress, us(50), us(99), ResidentBytes()};
}

std::array<StageShare, 5> BreakdownOf(const StreamStats& stats) {
  const StageTotals& totals = stats.stages;
  std::array<StageShare, 5> shares;
  const auto batches = static_cast<double>(std::max<std::uint64_t>(stats.batches, 1));
  // The stages also count shards of batches not taken yet.
  const double made = static_cast<double>(std::max<std::uint64_t>(totals.patches, 1));
  const double batch_patches = static_cast<double>(stats.patches) / batches;
  const double all_us = static_cast<double>(std::max<std::uint64_t>(totals.Sum(), 1));
  for (std::size_t i = 0; i < kStreamStages.size(); ++i) {
    const auto us = static_cast<double>(totals.*kStreamStages[i].us);
    shares[i] = {kStreamStages[i].name, stats.stall_fraction * us / all_us,
                 us * 1e-6 / made * batch_patches};
  }
  const bool is_known = stats.batches > 1;
  shares[4] = {"trainer", is_known ? 1 - stats.stall_fraction : 0,
               std::max(stats.wall_s - stats.wait_s, 0.0) / batches};
  return shares;
}

}  // namespace patchbay::client
