// Taking batches from a handed-over ring: the wait without the interpreter's lock, its errors, and
// the times of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <nanobind/nanobind.h>

#include "runtime/core/duration_counts.h"
#include "runtime/python/ring_mapping.h"

namespace patchbay::python {

/// Nanoseconds and counts since the ring was opened.
struct WaitTimes {
  std::uint64_t batches = 0, patches = 0, bytes = 0;
  std::int64_t first_call_ns = 0, first_batch_ns = 0, last_ns = 0;
  std::int64_t wait_ns = 0, later_wait_ns = 0;  ///< in Next; from the second batch on
  DurationCounts later_waits;                   ///< for each batch from the second on
};

class RingWaiter {
 public:
  explicit RingWaiter(std::shared_ptr<RingMapping> ring);

  /// The next batch. Raises a class of patchbay.errors when there will be none, and any exception
  /// of a signal handler (KeyboardInterrupt).
  std::shared_ptr<Hold> Next(std::int64_t timeout_ms);
  /// Present and later waiters get StreamClosed.
  void Close();
  nanobind::dict Stats() const;
  RingMapping& ring() const { return *ring_; }

 private:
  void CheckUsable() const;
  void CheckLife();
  void CheckExhausted(std::int64_t now_ns);
  std::shared_ptr<Hold> Count(std::shared_ptr<Hold> hold, std::int64_t begun_ns);

  const std::shared_ptr<RingMapping> ring_;
  std::atomic<bool> closed_{false};
  std::int64_t exhausted_since_ns_ = 0;
  std::uint64_t patch_bytes_ = 0;
  WaitTimes times_;  ///< under the interpreter's lock, as all but closed_
};

}  // namespace patchbay::python
