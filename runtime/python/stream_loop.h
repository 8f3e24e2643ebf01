// Where a stream of batches stands, and the loops over it: what happens between two batches of a
// Python loop, without a Python frame.
#pragma once

#include <cstdint>
#include <memory>

#include <nanobind/nanobind.h>

#include "runtime/python/ring_waiter.h"

namespace patchbay::python {

/// The position of the next batch, and the ring that it comes from. Guarded by the GIL.
class StreamPosition {
 public:
  /// From now on batches come from `ring`, the first one as (epoch, batch), `length` an epoch.
  void Move(std::shared_ptr<RingWaiter> ring, std::uint32_t epoch, std::uint64_t batch,
            std::uint64_t length);
  /// Loops that began before end with an error. Returns the number of a new one.
  std::uint64_t BeginLoop() { return ++loops_; }
  /// The next batch of the loop `number`; whatever RingWaiter::Next raises.
  std::shared_ptr<Hold> Next();

  std::uint64_t loops() const { return loops_; }
  std::uint32_t epoch() const { return epoch_; }
  std::uint64_t batch() const { return batch_; }

  /// Whether each batch looks for CUDA in the program, which a host ring's pages are locked for.
  bool looks_for_device = false;

 private:
  std::shared_ptr<RingWaiter> ring_;
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0, length_ = 0, loops_ = 0;
};

/// One loop over one epoch of a stream, which lives as long.
class StreamLoop {
 public:
  StreamLoop(nanobind::object stream, std::shared_ptr<StreamPosition> position);
  /// Raises StopIteration after the epoch, PatchbayError once another loop has begun.
  std::shared_ptr<Hold> Next();
  const nanobind::object& stream() const { return stream_; }

 private:
  void LookForDevice() const;

  const nanobind::object stream_;
  const std::shared_ptr<StreamPosition> position_;
  const std::uint64_t number_;
  const std::uint32_t epoch_;
};

}  // namespace patchbay::python
