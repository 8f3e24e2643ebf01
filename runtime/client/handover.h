// The client's side of a ring in another process's hands (runtime/stream/handover.h): takes batches
// from a stream as that process uses them up, and gives back the slots it is done with.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/client/open_run.h"
#include "runtime/memory/memfd_block.h"
#include "runtime/stream/handover.h"

namespace patchbay::client {

/// Runs one thread that takes batches and one that releases them. The run must outlive it and is
/// not to be used beside it, Run::cluster's client excepted.
class RingHandover {
 public:
  static StatusOr<std::unique_ptr<RingHandover>> Start(Run& run);
  /// Ends both threads; batches that the other process still holds are let go.
  ~RingHandover();
  RingHandover(const RingHandover&) = delete;
  RingHandover& operator=(const RingHandover&) = delete;

  /// The shared words, for the process that gets the ring.
  int control_fd() const { return memory_.fd(); }

 private:
  RingHandover(Run& run, memory::MemfdBlock memory);
  void TakeBatches();
  void ReleaseBatches();
  StatusOr<Batch> TakeNext();
  bool AwaitDemand();
  void Publish(Batch batch);
  void Fail(const Status& status);
  void CopyCounters();

  Run& run_;
  memory::MemfdBlock memory_;
  Handover* const shared_;
  std::atomic<bool> ending_ = false;
  /// An entry's batch is written before it is published and read after it was released.
  std::array<Batch, kHandoverEntries> held_;
  std::thread taker_, releaser_;
};

/// What the other process must know of a stream: counts, arrays with dtype, shape and offset in a
/// slot, the resume token of its position.
StatusOr<Json> DescribeRing(const Run& run);

/// Rows [first, first + count) of the run's images: path and slide_id.
Json DescribeImages(const Run& run, std::size_t first, std::size_t count);

}  // namespace patchbay::client
