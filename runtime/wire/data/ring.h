// The trainer's ring: one block of memory cut into slots, and the table of their contents. Every
// method is thread-safe: the mapped and the remote receiver, the control thread and the training
// loop use it at the same time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/data/ring_memory.h"
#include "runtime/wire/data/shard_header.h"
#include "runtime/wire/data/slot_table.h"

namespace patchbay::data {

/// Events of the ring for its owner. Called with no lock held, from whichever thread caused it;
/// must not block.
class RingEvents {
 public:
  virtual ~RingEvents() = default;
  virtual void OnCounted(const ShardId& shard, const LeaseNumber& lease) = 0;
  /// The slot is free again under its new generation: announce it.
  virtual void OnSlotFree(const SlotReport& slot) = 0;
};

/// Counters since the ring was made.
struct RingStats {
  std::uint64_t shards_counted = 0, bytes_counted = 0;
  std::uint64_t shards_refused = 0;   ///< dead grants, duplicates, fenced leases
  std::uint64_t shards_corrupt = 0;   ///< crc32c mismatch on the remote path
  std::uint64_t receives_failed = 0;  ///< transfers that ended with an error
  std::uint64_t batches_moved = 0;    ///< to a spare, because a fenced worker was not proven dead
  StageTotals stages;                 ///< totals of the shards that counted
};

/// Time that Next waits for another thread to give a slot back before it reports the ring as
/// exhausted.
inline constexpr std::int64_t kExhaustedGraceMs = 2'000;

/// A batch in a slot, as Next hands it out.
struct TakenBatch {
  Position at;
  std::optional<std::uint32_t> slot;  ///< nullopt: this rank has no patches in the batch
  std::uint64_t generation = 0;
  std::uint32_t patches = 0;
  /// The start of each array, in host or device memory according to the layout.
  std::vector<std::byte*> arrays;
  std::uint64_t size_bytes = 0;  ///< bytes of the patches, all arrays together
};

/// A trainer's slots and the shards that arrive in them. Thread-safe: transports count, Next takes.
class Ring {
 public:
  /// `memory` is of RingBytesOf the layout's slots, on a device or not.
  static StatusOr<std::unique_ptr<Ring>> Create(const SlotTableOptions& options,
                                                const BatchLayout& layout,
                                                std::unique_ptr<RingMemory> memory);
  /// Before anything else runs; `events` must outlive the ring.
  void SetEvents(RingEvents* events);

  /// Counts a shard that was written in place, or returns why it may not count (see
  /// SlotTable::Admit). A moved or staged shard has reached the consumer's memory when this
  /// returns.
  Status CountWritten(const ShardHeader& header);
  /// The range of the header's array that its grant names, in host memory, for a transfer that
  /// starts now. InvalidArgument for a report of every array.
  StatusOr<std::span<std::byte>> BeginReceive(const ShardHeader& header);
  /// The transfer of that array ended with `transfer`. True when the shard counted with it; false
  /// when other arrays of the shard are missing, or one failed.
  StatusOr<bool> FinishReceive(const ShardHeader& header, const Status& transfer);
  bool Receiving(const ShardId& shard, const LeaseNumber& lease) const;

  /// See SlotTable. Evacuate returns the slot that rests, if any, and copies the counted bytes
  /// before it returns.
  bool Fence(const ShardId& shard, const LeaseNumber& lease);
  StatusOr<std::optional<std::uint32_t>> Evacuate(const ShardId& shard, const Grant& grant);
  void ProveGone(std::uint32_t slot);

  /// Waits until the next batch is complete and takes it. Cancelled after Fail with its status;
  /// ResourceExhausted when every slot has been held for `grace_ms`, naming the holders;
  /// DeadlineExceeded after `timeout_ms` (negative = none).
  StatusOr<TakenBatch> Next(std::int64_t timeout_ms, std::int64_t grace_ms = kExhaustedGraceMs);
  void Release(std::uint32_t slot, std::uint64_t generation);
  /// Names the holder of a taken batch's slot, for the error of an exhausted ring.
  void NameHolder(std::uint32_t slot, std::string name);
  /// Every present and future Next returns `status`.
  void Fail(const Status& status);

  /// See SlotTable::AddUnits.
  void AddUnits(const std::vector<AssignedUnit>& units);
  void RemoveUnit(std::uint64_t unit);
  std::vector<AssignedUnit> units() const;

  std::vector<SlotReport> ReportAll() const;
  /// The slot now filling the shard's batch; the grant's slot when the batch has none.
  SlotReport ReportBatch(const ShardId& shard, const Grant& grant) const;
  Position next() const;
  RingStats stats() const;
  /// A shard refused before its header could be read.
  void CountRefusal();
  const RingMemory& memory() const { return *memory_; }
  /// RingMemory::KeepUntilExit.
  void KeepDeviceMemory() { memory_->KeepUntilExit(); }
  const SlotTableOptions& options() const { return options_; }
  const BatchLayout& batch_layout() const { return batch_layout_; }
  const SlotLayout& layout() const { return layout_; }
  std::uint32_t SlotCount() const { return options_.slots + options_.spares; }

 private:
  Ring(const SlotTableOptions& options, SlotTable table, std::unique_ptr<RingMemory> memory);
  Status CheckArrays(const ShardHeader& header) const;
  std::uint64_t HostOffset(const Grant& grant, std::size_t array) const;
  std::uint64_t DeviceOffset(const Grant& grant, std::size_t array) const;
  Status Begin(const ShardHeader& header);
  Status Move(const ShardMove& move);
  Status CountLocked(const ShardHeader& header);
  Status Refused(Status status);
  Status Stage(const ShardHeader& header);
  TakenBatch TakeLocked(std::optional<std::uint32_t> slot);
  std::string Holders() const;

  const SlotTableOptions options_;
  BatchLayout batch_layout_;
  SlotLayout layout_;
  const std::unique_ptr<RingMemory> memory_;
  mutable std::mutex mu_;  ///< guards everything below
  std::condition_variable changed_;
  SlotTable table_;
  RingEvents* events_ = nullptr;
  RingStats stats_;
  std::vector<std::string> holders_;  ///< by slot
  Status failed_;
};

}  // namespace patchbay::data
