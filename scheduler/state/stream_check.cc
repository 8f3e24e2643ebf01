#include "scheduler/state/stream_check.h"

#include <map>
#include <set>
#include <utility>

namespace patchbay::scheduler {
namespace {

/// The grant is of the slot's generation, or of the one before where its batch left the slot.
bool MayWrite(const Slot& slot, const Grant& grant) {
  const bool left = slot.state == protocol::SlotState::kResting;
  return slot.generation == grant.slot_generation ||
         (left && slot.generation == grant.slot_generation + 1);
}

}  // namespace

Status CheckSlots(const Stream& stream, const Trainer& trainer, const LeaseTable& leases) {
  std::map<std::uint32_t, std::uint32_t> by_slot;
  std::set<std::pair<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t>> ranges;
  for (const LeaseNumber& number : trainer.leases) {
    const Lease* lease = leases.Find(number);
    if (lease == nullptr || !lease->is_shard)
      return Internal("check core: a trainer's lease is not in the table");
    const Grant& grant = lease->grant;
    ++by_slot[grant.slot];
    const auto slot = trainer.slots.find(grant.slot);
    if (slot == trainer.slots.end() || !MayWrite(slot->second, grant)) {
      return Internal("check core: slot ", grant.slot, " moved on while lease ", number.ToString(),
                      " may write into it");
    }
    if (!ranges.insert({{grant.slot, grant.slot_generation}, grant.place}).second) {
      return Internal("check core: two live leases may write slot ", grant.slot, " place ",
                      grant.place);
    }
  }
  for (const auto& [number, slot] : trainer.slots) {
    if (by_slot[number] != slot.leases) {
      return Internal("check core: slot ", number, " counts ", slot.leases, " leases, not ",
                      by_slot[number]);
    }
    const bool is_free = trainer.free.count(number) != 0;
    if (is_free != (slot.state == protocol::SlotState::kFree && slot.announced == 0)) {
      return Internal("check core: slot ", number, " of stream ", stream.job,
                      " is free and is not");
    }
    if (is_free && slot.leases != 0) return Internal("check core: a free slot has leases");
  }
  return absl::OkStatus();
}

Status CheckFillings(const Trainer& trainer, const LeaseTable& leases) {
  std::set<std::uint32_t> bound;
  for (const auto& [at, filling] : trainer.filling) {
    if (!bound.insert(filling.slot).second)
      return Internal("check core: two batches are bound to one slot");
    std::uint32_t counted = 0;
    for (std::uint32_t i = 0; i < filling.shards.size(); ++i) {
      const Shard& shard = filling.shards[i];
      counted += shard.state == ShardState::kCounted ? 1 : 0;
      const bool pending = trainer.pending.count({at, i}) != 0;
      if (pending != (shard.state == ShardState::kPending))
        return Internal("check core: pending set differs");
      if (shard.state == ShardState::kLeased && leases.Find(shard.lease) == nullptr) {
        return Internal("check core: a shard's lease is not in the table");
      }
    }
    if (counted != filling.counted || counted == filling.shards.size()) {
      return Internal("check core: a filling batch's count differs");
    }
  }
  return absl::OkStatus();
}

Status CheckStreams(const StreamBook& streams, const LeaseTable& leases, const JobTable& table) {
  std::map<JobId, std::uint32_t> making;
  std::size_t in_table = 0, in_slots = 0;
  for (const auto& [number, lease] : leases.all()) {
    if (!lease->is_shard) continue;
    ++in_table;
    if (lease->phase == ShardPhase::kMaking) ++making[lease->stream];
  }
  for (const auto& [id, stream] : streams.streams()) {
    const Job* job = table.Find(id);
    if (job == nullptr || IsEnded(job->state))
      return Internal("check core: stream ", id, " is open without its job");
    if (stream.leases != making[id])
      return Internal("check core: stream ", id, " counts its leases wrongly");
    for (const auto& [rank, trainer] : stream.trainers) {
      in_slots += trainer.leases.size();
      PB_RETURN_IF_ERROR(CheckSlots(stream, trainer, leases));
      PB_RETURN_IF_ERROR(CheckFillings(trainer, leases));
    }
  }
  return in_table == in_slots ? absl::OkStatus() : Internal("check core: leases nobody holds");
}

}  // namespace patchbay::scheduler
