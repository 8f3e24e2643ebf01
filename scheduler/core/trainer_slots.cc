#include "scheduler/core/trainer_slots.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

using protocol::SlotRow;
using protocol::SlotState;

/// A former scheduler's late shards bound the slot to another batch than this one did. Nothing was
/// leased into it, so the row is the truth.
bool TrainerSlots::BoundLate(const Trainer& trainer, const SlotRow& row) const {
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
  const bool came_back = row.state == SlotState::kFree && row.generation > slot.generation;
  return filling->second.counted == 0 && (other || came_back);
}

void TrainerSlots::TakeRow(Stream& stream, Trainer& trainer, const SlotRow& row) {
  if (trainer.slots.count(row.slot) == 0 && trainer.slots.size() >= kMaxRingSlots) return;
  if (row.state != SlotState::kFree && row.batch >= BatchesPerEpoch(stream.geometry)) return;
  // Counted here, not by the slots that the attach names: an attach sent before there was a ring
  // may arrive late.
  const bool first_heard = trainer.slots.count(row.slot) == 0;
  if (first_heard && recovery_.IsFromBefore(stream.job)) ++trainer.batches_to_fence;
  if (BoundLate(trainer, row)) ForgetSlot(trainer, row.slot);
  const bool fresh = trainer.slots.count(row.slot) == 0;
  switch (row.state) {
    case SlotState::kFree:
      return TakeFree(trainer, row);
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

/// The trainer has done with a batch.
void TrainerSlots::NoteStep(Trainer& trainer) {
  constexpr double kLongestStepMs = 60'000;  // a longer one is a pause
  const TimeMs before = std::exchange(trainer.taken_at, event_.now);
  if (before == 0) return;
  const double step_ms = std::min(static_cast<double>(event_.now - before), kLongestStepMs);
  trainer.step_ms += trainer.step_ms == 0 ? step_ms : (step_ms - trainer.step_ms) / 8;
}

/// A slot came back, unless this is an old announcement.
void TrainerSlots::TakeFree(Trainer& trainer, const SlotRow& row) {
  const auto it = trainer.slots.find(row.slot);
  if (it != trainer.slots.end()) {
    Slot& slot = it->second;
    if (row.generation <= std::max(slot.generation, slot.announced)) return;
    if (slot.state == SlotState::kFull || slot.state == SlotState::kFilling) NoteStep(trainer);
    const auto filling = trainer.filling.find(slot.at);
    if (slot.state == SlotState::kFilling && filling != trainer.filling.end() &&
        filling->second.slot == row.slot) {
      const auto shards = static_cast<std::uint32_t>(filling->second.shards.size());
      const Position at = slot.at;
      for (std::uint32_t i = 0; i < shards; ++i) {
        shards_.Count(trainer, {at.epoch, at.batch, trainer.rank, i}, nullptr);
      }
    }
  }
  trainer.slots[row.slot].announced = row.generation;
  FreeIfClear(trainer, row.slot);
}

/// A slot that this scheduler chose for a batch, or may choose, rests at the trainer: a former
/// scheduler's grant was given up there. Once no lease points into it, its batch gets another.
void TrainerSlots::TakeResting(Trainer& trainer, const SlotRow& row) {
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

/// Takes the trainer's row of a slot that is filling: the shards that it counted are counted.
void TrainerSlots::TakeFilling(Stream& stream, Trainer& trainer, const SlotRow& row) {
  const Position at{row.epoch, row.batch};
  auto filling = trainer.filling.find(at);
  const auto known = trainer.slots.find(row.slot);
  const bool spare = known != trainer.slots.end() && known->second.state == SlotState::kResting &&
                     known->second.leases == 0 && row.generation >= known->second.generation;
  if (filling == trainer.filling.end()) {
    if (known != trainer.slots.end() && !spare) return;
    trainer.slots[row.slot] = {row.generation, SlotState::kFilling, at, 0, 0, false};
    if (!(at < trainer.next)) trainer.named.insert(at);
    OpenFilling(stream, trainer, at, row.slot, recovery_.IsFromBefore(stream.job));
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
    shards_.Count(trainer, {at.epoch, at.batch, trainer.rank, shard}, nullptr);
  }
}

Filling& TrainerSlots::OpenFilling(Stream& stream, Trainer& trainer, Position at,
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
  streams_.MarkChanged(stream.job);
  return filling;
}

/// Any lease of a former incarnation on this shard is void.
void TrainerSlots::SendUnknownFence(const Stream& stream, Trainer& trainer, const ShardId& id) {
  trainer.unknown[id] = event_.now;
  const Filling& filling = trainer.filling.at({id.epoch, id.batch});
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  const Grant grant{filling.slot, trainer.slots.at(filling.slot).generation, run.place, run.count};
  barrier_.Send(
      trainer.peer, 0,
      protocol::FenceShard{stream.job, {barrier_.table().incarnation(), 0}, id, 0, grant});
}

/// Binds free slots to the next batches.
void TrainerSlots::CutGrants(Stream& stream, Trainer& trainer) {
  if (trainer.state != TrainerState::kAttached || !recovery_.AllowsGrants(trainer)) return;
  const auto held = [&](Position at) {
    if (trainer.filling.count(at) != 0) return true;
    return std::any_of(trainer.slots.begin(), trainer.slots.end(), [&](const auto& entry) {
      return entry.second.state == SlotState::kFull && entry.second.at == at;
    });
  };
  while (!trainer.free.empty()) {
    const std::optional<Position> next = units_.NextBatch(stream, trainer);
    if (!next.has_value()) return;
    trainer.next = *next;
    const bool unknown = trainer.batches_to_fence != 0;
    if (unknown) --trainer.batches_to_fence;
    trainer.named.erase(trainer.named.begin(), trainer.named.lower_bound(trainer.next));
    if (held(trainer.next) || trainer.named.count(trainer.next) != 0) {
      trainer.next = NextPosition(stream.geometry, trainer.next);
      continue;
    }
    const std::uint32_t number = *trainer.free.begin();
    trainer.free.erase(trainer.free.begin());
    Slot& slot = trainer.slots.at(number);
    slot.state = SlotState::kFilling;
    slot.at = trainer.next;
    OpenFilling(stream, trainer, trainer.next, number, unknown).chosen_here = true;
    trainer.next = NextPosition(stream.geometry, trainer.next);
  }
}

/// The answer to an unknown shard's fence shows another batch where its own was to go.
bool TrainerSlots::NamesAnother(const Trainer& trainer,
                                const protocol::ShardFenced& message) const {
  const auto filling = trainer.filling.find(PositionOf(message.shard));
  const SlotRow& row = message.row;
  if (message.already_counted || trainer.unknown.count(message.shard) == 0 ||
      filling == trainer.filling.end() || filling->second.slot != row.slot) {
    return false;
  }
  const Position at{row.epoch, row.batch};
  const bool holds = row.state == SlotState::kFilling || row.state == SlotState::kFull;
  const std::uint64_t generation = trainer.slots.at(row.slot).generation;
  return holds ? row.generation >= generation && at != filling->first
               : row.state == SlotState::kFree && row.generation > generation;
}

/// The batch lies in slot `to`, not in the slot that it was bound to. If it was moved, its old slot
/// rests. If it came in under a former scheduler's grant, this scheduler had bound the two slots
/// the wrong way round: nothing is leased into them yet, and they change places.
void TrainerSlots::LeaveSlot(Trainer& trainer, Filling& filling, std::uint32_t to) {
  Slot& from = trainer.slots.at(filling.slot);
  const auto target = trainer.slots.find(to);
  const bool known = target != trainer.slots.end();
  const bool crossed =
      filling.chosen_here && known && from.leases == 0 &&
      (target->second.state == SlotState::kFree || target->second.state == SlotState::kFilling);
  if (!crossed) {
    from.state = SlotState::kResting;
    ++from.generation;  // rows of before the move are old news
    return;
  }
  const auto other = trainer.filling.find(target->second.at);
  if (target->second.state == SlotState::kFilling && other != trainer.filling.end() &&
      other->second.slot == to) {
    other->second.slot = filling.slot;
    from.at = target->second.at;
  } else {
    from.state = SlotState::kFree;
    if (from.announced == 0) trainer.free.insert(filling.slot);
  }
}

/// Moves the batch to the slot of the row.
void TrainerSlots::MoveFilling(Trainer& trainer, Filling& filling, const SlotRow& row) {
  LeaveSlot(trainer, filling, row.slot);
  trainer.free.erase(row.slot);
  Slot& to = trainer.slots[row.slot];
  to.generation = row.generation;
  to.state = SlotState::kFilling;
  to.at = {row.epoch, row.batch};
  to.announced = 0;
  to.rests = false;
  filling.slot = row.slot;
  filling.chosen_here = false;
}

/// The trainer may have moved the batch to a spare slot while it fenced. Other leases into the old
/// slot stay valid: the trainer copies their shards.
void TrainerSlots::TakeMove(Trainer& trainer, const protocol::ShardFenced& message) {
  const SlotRow& row = message.row;
  const Position at = PositionOf(message.shard);
  const auto filling = trainer.filling.find(at);
  if (filling == trainer.filling.end() || Position{row.epoch, row.batch} != at) return;
  if (row.state == SlotState::kFree || row.state == SlotState::kResting) return;
  const std::uint32_t from = filling->second.slot;
  if (row.slot != from) {
    if (trainer.slots.count(row.slot) == 0 && trainer.slots.size() >= kMaxRingSlots) return;
    MoveFilling(trainer, filling->second, row);
  }
  for (const std::uint32_t shard : row.counted) {
    if (shard == message.shard.shard) continue;
    const ShardId id{at.epoch, at.batch, trainer.rank, shard};
    shards_.Count(trainer, id, nullptr);
    if (trainer.filling.count(at) == 0) return;
  }
}

/// The trainer has taken every batch before its first one. A slot that is free in its table,
/// although bound to one of those batches here, was never used for it: the grant was made from an
/// old position.
void TrainerSlots::CatchUp(Trainer& trainer, const protocol::AttachTrainer& message) {
  const Position first{message.first_epoch, message.first_batch};
  trainer.behind = false;
  trainer.next = std::max(trainer.next, first);
  while (!trainer.filling.empty() && trainer.filling.begin()->first < first) {
    const Position at = trainer.filling.begin()->first;
    const auto shards = static_cast<std::uint32_t>(trainer.filling.begin()->second.shards.size());
    for (std::uint32_t i = 0; i < shards; ++i) {
      shards_.Count(trainer, {at.epoch, at.batch, trainer.rank, i}, nullptr);
    }
  }
  for (const SlotRow& row : message.slots) {
    const auto it = trainer.slots.find(row.slot);
    if (it == trainer.slots.end() || row.state != SlotState::kFree) continue;
    Slot& slot = it->second;
    if (slot.state != SlotState::kFull || !(slot.at < first)) continue;
    if (row.generation != slot.generation || slot.announced != 0) continue;
    slot.announced = row.generation;
    FreeIfClear(trainer, row.slot);
  }
}

/// The batch was counted under a former scheduler's lease and is no longer in the ring: request the
/// whole table.
void TrainerSlots::TakeFenceRow(Trainer& trainer, const protocol::ShardFenced& message) {
  TakeMove(trainer, message);
  const Position in_row{message.row.epoch, message.row.batch};
  if (message.already_counted &&
      (message.row.state == SlotState::kFree || in_row != PositionOf(message.shard))) {
    trainer.behind = true;
  }
  if (message.row.state == SlotState::kResting && trainer.slots.count(message.row.slot) != 0) {
    TakeResting(trainer, message.row);
  }
}

void TrainerSlots::MakeKnown(Trainer& trainer, const ShardId& id) {
  streams_.MarkChanged(trainer.stream);
  const auto filling = trainer.filling.find(PositionOf(id));
  if (filling == trainer.filling.end()) return;
  Shard& shard = filling->second.shards[id.shard];
  if (shard.state != ShardState::kUnknown) return;
  shard.state = ShardState::kPending;
  trainer.pending.insert({filling->first, id.shard});
}

void TrainerSlots::ResendFences(Stream& stream, Trainer& trainer, TimeMs resend_ms) {
  std::vector<ShardId> again;
  for (const auto& [id, sent] : trainer.unknown) {
    if (event_.now - sent >= resend_ms) again.push_back(id);
  }
  for (const ShardId& id : again) SendUnknownFence(stream, trainer, id);
}

void TrainerSlots::FreeIfClear(Trainer& trainer, std::uint32_t slot) {
  if (FreeSlotIfClear(trainer, slot)) streams_.MarkChanged(trainer.stream);
}

}  // namespace patchbay::scheduler
