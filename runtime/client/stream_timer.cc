#include "runtime/client/stream_timer.h"

#include "runtime/core/clock.h"

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
  if (first_got_ns_ != 0) {
    stats.first_batch_s = Seconds(first_got_ns_ - begun_ns_);
    const std::int64_t later = now - first_got_ns_;
    if (later > 0) {
      stats.stall_fraction = static_cast<double>(waited_later_ns_) / static_cast<double>(later);
    }
  }
  return stats;
}

}  // namespace patchbay::client
