// A trainer's slots: announced, bound to its next batches, given back, and reported in its rows.
// Private to scheduler/core.
#pragma once

#include <cstdint>

#include "scheduler/core/recovery.h"
#include "scheduler/core/shard_leases.h"
#include "scheduler/core/unit_pool.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// Keeps a trainer's slots and filling batches equal to the trainer's rows: its table is
/// authoritative. stream_book.h states and checks the invariants.
class TrainerSlots {
 public:
  TrainerSlots(const EventContext& event, JournalBarrier& barrier, Recovery& recovery,
               StreamBook& streams, UnitPool& units, ShardLeases& shards)
      : event_(event),
        barrier_(barrier),
        recovery_(recovery),
        streams_(streams),
        units_(units),
        shards_(shards) {}

  /// One row of the trainer's table, when it attaches or when it announces slots.
  void TakeRow(Stream& stream, Trainer& trainer, const protocol::SlotRow& row);
  /// The row that came with the answer to a fence: the batch may have moved, or rest.
  void TakeFenceRow(Trainer& trainer, const protocol::ShardFenced& message);
  /// The answer to an unknown shard's fence shows another batch where its own was to go.
  bool NamesAnother(const Trainer& trainer, const protocol::ShardFenced& message) const;
  /// The shard that was unknown after a restart is to be made.
  void MakeKnown(Trainer& trainer, const ShardId& id);
  /// The trainer attaches again and has taken every batch before its first one.
  void CatchUp(Trainer& trainer, const protocol::AttachTrainer& message);
  /// Binds free slots to the next batches.
  void CutGrants(Stream& stream, Trainer& trainer);
  /// Repeats the fences of unknown shards that are not answered.
  void ResendFences(Stream& stream, Trainer& trainer, TimeMs resend_ms);

 private:
  bool BoundLate(const Trainer& trainer, const protocol::SlotRow& row) const;
  void NoteStep(Trainer& trainer);
  void TakeFree(Trainer& trainer, const protocol::SlotRow& row);
  void TakeResting(Trainer& trainer, const protocol::SlotRow& row);
  void TakeFilling(Stream& stream, Trainer& trainer, const protocol::SlotRow& row);
  void TakeMove(Trainer& trainer, const protocol::ShardFenced& message);
  void LeaveSlot(Trainer& trainer, Filling& filling, std::uint32_t to);
  void MoveFilling(Trainer& trainer, Filling& filling, const protocol::SlotRow& row);
  Filling& OpenFilling(Stream& stream, Trainer& trainer, Position at, std::uint32_t slot,
                       bool unknown);
  void SendUnknownFence(const Stream& stream, Trainer& trainer, const ShardId& id);
  void FreeIfClear(Trainer& trainer, std::uint32_t slot);

  const EventContext& event_;
  JournalBarrier& barrier_;
  Recovery& recovery_;
  StreamBook& streams_;
  UnitPool& units_;
  ShardLeases& shards_;
};

}  // namespace patchbay::scheduler
