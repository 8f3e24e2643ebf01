// The client's side of a ring that another process uses (runtime/model/stream/handover.h): takes
// batches from a stream as that process needs them, and gives back the slots that it has released.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/client/open_run.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/stream/handover.h"

namespace patchbay::client {

/// Batches of a device stream that was left while the other process still uses them: keeps the
/// device's memory, which that process has mapped and does not own. Any thread.
class RetiredRing {
 public:
  RetiredRing(memory::MemfdBlock memory, std::vector<std::pair<std::uint32_t, Batch>> batches)
      : memory_(std::move(memory)), batches_(std::move(batches)) {}
  /// Frees released slots; true once none is left.
  bool Done();

 private:
  memory::MemfdBlock memory_;
  std::vector<std::pair<std::uint32_t, Batch>> batches_;  ///< with their entries
};

/// Runs one thread that takes batches and one that releases them. The run must outlive it and may
/// not be used otherwise meanwhile, except for Run::cluster's client.
class RingHandover {
 public:
  static StatusOr<std::unique_ptr<RingHandover>> Start(Run& run);
  /// Ends both threads, and releases the batches that the other process still holds.
  ~RingHandover();
  /// Ends both threads, and keeps the batches that the other process has taken and not released.
  /// The run may end before them.
  RetiredRing Retire();
  RingHandover(const RingHandover&) = delete;
  RingHandover& operator=(const RingHandover&) = delete;

  /// The shared words, for the process that gets the ring.
  int control_fd() const { return memory_.fd(); }

 private:
  RingHandover(Run& run, memory::MemfdBlock memory, std::uint64_t slot_stride);
  void End();
  void TakeBatches();
  void ReleaseBatches();
  StatusOr<Batch> TakeNext();
  bool AwaitDemand();
  void Publish(Batch batch);
  std::uint32_t SlotOf(const Batch& batch) const;
  void Fail(const Status& status);
  void CopyCounters();

  Run& run_;
  memory::MemfdBlock memory_;
  const std::uint64_t slot_stride_;  ///< bytes, where the images lie
  Handover* const shared_;
  std::atomic<bool> ending_ = false;
  /// An entry's batch is written before it is published and read after it was released.
  std::array<Batch, kHandoverEntries> held_;
  std::thread taker_, releaser_;
};

/// {"code", "config", "text", "subject"}: an error for that process, less than kHandoverErrorBytes.
Json DescribeError(const Status& status);

/// Facts of a stream that the other process needs: counts, arrays with dtype, shape and offset in a
/// slot, the resume token of its position; for device slots also how to map the device's memory.
StatusOr<Json> DescribeRing(const Run& run);

/// Rows [first, first + count) of the run's images: path, slide_id, the facts that the plan used
/// and the table's other columns.
Json DescribeImages(const Run& run, std::size_t first, std::size_t count);

}  // namespace patchbay::client
