// The trainer's ring: one block of memory cut into slots, and the table that says what is in them.
// Every method is thread-safe; the mapped and the remote receiver, the control thread and the
// training loop all meet here.
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

#include "runtime/base/status.h"
#include "runtime/data/ring_memory.h"
#include "runtime/data/shard_header.h"
#include "runtime/data/slot_table.h"

namespace patchbay::data {

/// What the ring tells its owner. Called with no lock held, from whichever thread caused it; must
/// not block.
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
};

/// A batch in a slot, as Next hands it out.
struct TakenBatch {
  Position at;
  std::optional<std::uint32_t> slot;  ///< nullopt: this rank has no patches in the batch
  std::uint64_t generation = 0;
  std::uint32_t patches = 0;
  std::byte* data = nullptr;  ///< host or device, as RingMemory says
  std::uint64_t size_bytes = 0;
};

class Ring {
 public:
  /// `events` must outlive the ring or be replaced by null with SetEvents first.
  static StatusOr<std::unique_ptr<Ring>> Create(const SlotTableOptions& options,
                                                std::unique_ptr<RingMemory> memory);
  void SetEvents(RingEvents* events);

  /// See SlotTable. Count copies a moved shard and stages a host shard to its device slot before it
  /// returns.
  Status Admit(const ShardHeader& header) const;
  Status Count(const ShardHeader& header);
  /// The range the header's grant names, in host memory. Valid until EndReceive.
  StatusOr<std::span<std::byte>> BeginReceive(const ShardHeader& header);
  void EndReceive(const ShardHeader& header);
  bool Receiving(const LeaseNumber& lease) const;

  bool Fence(const ShardId& shard, const LeaseNumber& lease);
  /// Moves the batch (and its counted bytes) out of the grant's slot. Blocks for the copy.
  Status MoveToSpare(const ShardId& shard, const Grant& grant);
  void AddZombie(std::uint32_t slot);
  void ProveGone(std::uint32_t slot);

  /// Waits until the next batch is complete and takes it. Cancelled after Fail with its status;
  /// ResourceExhausted when every slot is held, naming the holders; DeadlineExceeded after
  /// `timeout_ms` (negative = none).
  StatusOr<TakenBatch> Next(std::int64_t timeout_ms);
  void Release(std::uint32_t slot, std::uint64_t generation);
  /// Who keeps the slot of a taken batch, for the error of an exhausted ring.
  void NameHolder(std::uint32_t slot, std::string name);
  /// Every present and future Next returns `status`.
  void Fail(const Status& status);

  std::vector<SlotReport> ReportAll() const;
  SlotReport ReportBatch(const ShardId& shard, const Grant& grant) const;
  Position next() const;
  RingStats stats() const;
  void CountRefusal();
  void CountCorrupt();
  void CountFailedReceive();
  const RingMemory& memory() const { return *memory_; }
  const SlotTableOptions& options() const { return options_; }
  std::uint32_t SlotCount() const { return options_.slots + options_.spares; }

 private:
  Ring(const SlotTableOptions& options, SlotTable table, std::unique_ptr<RingMemory> memory);
  std::span<std::byte> Range(std::uint32_t slot, std::uint64_t offset, std::uint64_t size) const;
  std::string Holders() const;

  const SlotTableOptions options_;
  const std::unique_ptr<RingMemory> memory_;
  mutable std::mutex mu_;  ///< guards everything below
  std::condition_variable changed_;
  SlotTable table_;
  RingEvents* events_ = nullptr;
  RingStats stats_;
  std::vector<std::string> holders_;
  Status failed_;
};

}  // namespace patchbay::data
