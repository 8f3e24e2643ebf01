// Slow storage without real waits: the test binary's own read, write, stat, ... advance a clock
// that nothing else moves. It is below every reader and writer, while a slow ByteStore would delay
// only reads of stores. A lease is renewed when the task's progress moves; the tests measure the
// longest time in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace patchbay::workers {

/// The time of one operation, and of its bytes in addition, on a loaded server behind a network
/// file system.
inline constexpr std::int64_t kOperationMs = 50;
inline constexpr std::int64_t kBytesPerMs = 10'000;
/// The time of a call that only looks up a name: open, stat, realpath.
inline constexpr std::int64_t kLookupMs = 10;
/// A tenth of the lease that the scheduler gives (CoreOptions::lease_ms is 10 s).
inline constexpr std::int64_t kShortLeaseMs = 1000;

/// Counts from Begin to End; one at a time, from any thread.
class SlowStorage {
 public:
  /// `progress` is the task's counter.
  static void Begin(const std::atomic<std::uint64_t>* progress);
  /// The longest time without progress, in ms of the storage's clock.
  static std::int64_t End();
  /// Operations between Begin and End.
  static std::int64_t operations();
};

}  // namespace patchbay::workers
