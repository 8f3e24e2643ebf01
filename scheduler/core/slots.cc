// A trainer's slots: coming and going, and bound to its next batches.
#include <algorithm>

#include "scheduler/core/machine.h"

namespace patchbay::scheduler {

using protocol::SlotRow;
using protocol::SlotState;

/// A former scheduler's late shards bound the slot to another batch than this one did. Nothing was
/// leased into it, so the row is the truth.
bool Core::Machine::BoundLate(const Trainer& trainer, const SlotRow& row) const {
  const auto known = trainer.slots.find(row.slot);
  if (known == trainer.slots.end() || known->second.leases != 0) return false;
  const Slot& slot = known->second;
  const Position at{row.epoch, row.batch};
  const bool holds = row.state == SlotState::kFilling || row.state == SlotState::kFull;
  const bool other = holds && row.generation >= slot.generation && trainer.filling.count(at) == 0;
  if (slot.state == SlotState::kFree) return other;
  const auto filling = trainer.filling.find(slot.at);
  if (slot.state != SlotState::kFilling || filling == trainer.filling.end() ||
      filling->second.slot != row.slot || !filling->second.chosen_here) {
    return false;
  }
  const auto& shards = filling->second.shards;
  const bool unknown = std::any_of(shards.begin(), shards.end(), [](const Shard& shard) {
    return shard.state == ShardState::kUnknown;
  });
  const bool came_back = row.state == SlotState::kFree && row.generation > slot.generation;
  return unknown && filling->second.counted == 0 && (other || came_back);
}

/// The batch bound to the slot, if any, waits for the next free one.
void Core::Machine::ForgetSlot(Trainer& trainer, std::uint32_t number) {
  const Slot slot = trainer.slots.at(number);
  trainer.free.erase(number);
  trainer.slots.erase(number);
  const auto filling = trainer.filling.find(slot.at);
  if (slot.state != SlotState::kFilling || filling == trainer.filling.end()) return;
  for (std::uint32_t i = 0; i < filling->second.shards.size(); ++i) {
    trainer.pending.erase({slot.at, i});
    trainer.unknown.erase({slot.at.epoch, slot.at.batch, trainer.rank, i});
  }
  trainer.filling.erase(filling);
  trainer.next = std::min(trainer.next, slot.at);
  ++trainer.batches_to_fence;
}

void Core::Machine::TakeRow(Stream& stream, Trainer& trainer, const SlotRow& row) {
  if (trainer.slots.count(row.slot) == 0 && trainer.slots.size() >= kMaxSlotsPerTrainer) return;
  if (row.state != SlotState::kFree && row.batch >= BatchesPerEpoch(stream.geometry)) return;
  if (BoundLate(trainer, row)) ForgetSlot(trainer, row.slot);
  const bool fresh = trainer.slots.count(row.slot) == 0;
  switch (row.state) {
    case SlotState::kFree:
      return TakeFree(stream, trainer, row);
    case SlotState::kFilling:
      return TakeFilling(stream, trainer, row);
    case SlotState::kResting:
      if (!fresh) return TakeResting(trainer, row);
      [[fallthrough]];
    case SlotState::kFull:
      if (fresh) {
        trainer.slots[row.slot] = {row.generation, row.state, {row.epoch, row.batch}, 0, 0, false};
        if (row.state == SlotState::kFull && !(Position{row.epoch, row.batch} < trainer.next)) {
          trainer.named.insert({row.epoch, row.batch});
        }
      } else if (row.state == SlotState::kFull) {
        TakeFilling(stream, trainer, row);
      }
  }
}

/// A slot came back, unless this is an old announcement.
void Core::Machine::TakeFree(Stream& stream, Trainer& trainer, const SlotRow& row) {
  const auto it = trainer.slots.find(row.slot);
  if (it != trainer.slots.end()) {
    Slot& slot = it->second;
    if (row.generation <= std::max(slot.generation, slot.announced)) return;
    const auto filling = trainer.filling.find(slot.at);
    if (slot.state == SlotState::kFilling && filling != trainer.filling.end() &&
        filling->second.slot == row.slot) {
      const auto shards = static_cast<std::uint32_t>(filling->second.shards.size());
      const Position at = slot.at;
      for (std::uint32_t i = 0; i < shards; ++i) {
        Count(stream, trainer, {at.epoch, at.batch, trainer.rank, i}, nullptr);
      }
    }
  }
  trainer.slots[row.slot].announced = row.generation;
  FreeSlotIfClear(trainer, row.slot);
}

/// A slot that this scheduler chose for a batch, or may choose, rests at the trainer: a former
/// scheduler's grant was given up there. Once no lease points into it, its batch gets another.
void Core::Machine::TakeResting(Trainer& trainer, const SlotRow& row) {
  Slot& slot = trainer.slots.at(row.slot);
  if (row.generation < std::max(slot.generation, slot.announced)) return;
  slot.announced = 0;
  if (slot.state == SlotState::kFree) {
    trainer.free.erase(row.slot);
    slot.generation = row.generation;
    slot.state = SlotState::kResting;
    return;
  }
  const auto filling = trainer.filling.find(slot.at);
  if (slot.state != SlotState::kFilling || filling == trainer.filling.end() ||
      filling->second.slot != row.slot || !filling->second.chosen_here ||
      filling->second.counted != 0 || Position{row.epoch, row.batch} == slot.at) {
    return;
  }
  slot.rests = true;
  LeaveRestingIfClear(trainer, row.slot);
}

void Core::Machine::LeaveRestingIfClear(Trainer& trainer, std::uint32_t number) {
  const auto it = trainer.slots.find(number);
  if (it == trainer.slots.end() || !it->second.rests || it->second.leases != 0) return;
  const std::uint64_t generation = it->second.generation;
  ForgetSlot(trainer, number);
  trainer.slots[number] = {generation, SlotState::kResting, {}, 0, 0, false};
}

void Core::Machine::FreeSlotIfClear(Trainer& trainer, std::uint32_t number) {
  const auto it = trainer.slots.find(number);
  if (it == trainer.slots.end()) return;
  Slot& slot = it->second;
  if (slot.announced == 0 || slot.leases != 0) return;
  slot.generation = slot.announced;
  slot.announced = 0;
  slot.rests = false;
  slot.state = SlotState::kFree;
  trainer.free.insert(number);
  shards_changed = true;
}

/// A slot that holds or is filling a batch, as the trainer sees it: what it counted is counted.
void Core::Machine::TakeFilling(Stream& stream, Trainer& trainer, const SlotRow& row) {
  const Position at{row.epoch, row.batch};
  auto filling = trainer.filling.find(at);
  const auto known = trainer.slots.find(row.slot);
  const bool spare = known != trainer.slots.end() && known->second.state == SlotState::kResting &&
                     known->second.leases == 0 && row.generation >= known->second.generation;
  if (filling == trainer.filling.end()) {
    if (known != trainer.slots.end() && !spare) return;
    trainer.slots[row.slot] = {row.generation, SlotState::kFilling, at, 0, 0, false};
    if (!(at < trainer.next)) trainer.named.insert(at);
    OpenFilling(stream, trainer, at, row.slot, had_workers);
    filling = trainer.filling.find(at);
  }
  if (filling->second.slot != row.slot || trainer.slots[row.slot].generation != row.generation) {
    return;
  }
  const auto shards = static_cast<std::uint32_t>(filling->second.shards.size());
  std::vector<std::uint32_t> counted = row.counted;
  if (row.state == SlotState::kFull) {
    counted.clear();
    for (std::uint32_t i = 0; i < shards; ++i) counted.push_back(i);
  }
  for (const std::uint32_t shard : counted) {
    Count(stream, trainer, {at.epoch, at.batch, trainer.rank, shard}, nullptr);
  }
}

Filling& Core::Machine::OpenFilling(Stream& stream, Trainer& trainer, Position at,
                                    std::uint32_t slot, bool unknown) {
  Filling& filling = trainer.filling[at];
  filling.slot = slot;
  filling.shards.resize(ShardsInRank(stream.geometry, at.batch, trainer.rank));
  for (std::uint32_t i = 0; i < filling.shards.size(); ++i) {
    if (unknown) {
      filling.shards[i].state = ShardState::kUnknown;
      SendUnknownFence(stream, trainer, {at.epoch, at.batch, trainer.rank, i});
    } else {
      trainer.pending.insert({at, i});
    }
  }
  shards_changed = true;
  return filling;
}

/// Any lease of a former incarnation on this shard is void.
void Core::Machine::SendUnknownFence(Stream& stream, Trainer& trainer, const ShardId& id) {
  trainer.unknown[id] = now;
  const Filling& filling = trainer.filling.at({id.epoch, id.batch});
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  const Grant grant{filling.slot, trainer.slots.at(filling.slot).generation, run.offset_bytes,
                    run.count * stream.geometry.patch_bytes};
  Send(trainer.peer, 0, protocol::FenceShard{stream.job, {table.incarnation(), 0}, id, 0, grant});
}

/// Binds free slots to the next batches.
void Core::Machine::CutGrants(Stream& stream, Trainer& trainer) {
  if (trainer.state != TrainerState::kAttached || !GrantsAllowed(trainer)) return;
  const auto held = [&](Position at) {
    if (trainer.filling.count(at) != 0) return true;
    return std::any_of(trainer.slots.begin(), trainer.slots.end(), [&](const auto& entry) {
      return entry.second.state == SlotState::kFull && entry.second.at == at;
    });
  };
  while (!trainer.free.empty()) {
    trainer.next = SkipEmpty(stream.geometry, trainer.rank, trainer.next);
    const bool unknown = trainer.batches_to_fence != 0;
    if (unknown) --trainer.batches_to_fence;
    trainer.named.erase(trainer.named.begin(), trainer.named.lower_bound(trainer.next));
    if (held(trainer.next) || trainer.named.count(trainer.next) != 0) {
      trainer.next = After(stream.geometry, trainer.next);
      continue;
    }
    const std::uint32_t number = *trainer.free.begin();
    trainer.free.erase(trainer.free.begin());
    Slot& slot = trainer.slots.at(number);
    slot.state = SlotState::kFilling;
    slot.at = trainer.next;
    OpenFilling(stream, trainer, trainer.next, number, unknown).chosen_here = true;
    trainer.next = After(stream.geometry, trainer.next);
  }
}

}  // namespace patchbay::scheduler
