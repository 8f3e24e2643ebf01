// Waiting and shares of a stream's time: the trainer, and the stages of the workers it waited for.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "runtime/client/stream.h"
#include "runtime/core/duration_counts.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::client {

/// How long a trainer waited for its batches, and how many it got. Wall time begins with the first
/// wait and ends with Stop (or is still running). Thread-safe.
class StreamTimer {
 public:
  void BeginWait();
  void EndWait(bool got_batch);
  void Count(std::uint64_t patches, std::uint64_t size_bytes);
  void Stop();
  /// The fields this class knows: batches, patches, bytes, times and the stall fraction.
  StreamStats stats() const;
  protocol::Heartbeat HeartbeatWith(std::uint64_t progress) const;

 private:
  mutable std::mutex mu_;
  StreamStats counts_;         ///< guarded by mu_, as are all below
  std::int64_t begun_ns_ = 0;  ///< first BeginWait; 0 = not yet
  std::int64_t wait_begun_ns_ = 0;
  std::int64_t first_got_ns_ = 0;  ///< when the first batch was there
  std::int64_t stopped_ns_ = 0;
  std::int64_t waited_ns_ = 0;
  std::int64_t waited_later_ns_ = 0;  ///< from the second batch on
  DurationCounts waits_;              ///< for each batch from the second on
};

struct StageShare {
  std::string_view name;
  /// Share of the loop's wall time from the second batch on. The trainer's is the time that it did
  /// not wait; the wait is divided among the stages as the workers' time was. 0 before anything is
  /// known.
  double fraction = 0;
  /// Mean for a batch of this rank, in seconds: the workers' stages over all of them together, so
  /// it may exceed the time between batches; the trainer's as the clock on the wall shows it.
  double s_per_batch = 0;
};

/// storage, decode, transform, transfer, trainer.
std::array<StageShare, 5> BreakdownOf(const StreamStats& stats);

}  // namespace patchbay::client
