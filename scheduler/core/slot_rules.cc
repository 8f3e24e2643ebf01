#include "scheduler/core/slot_rules.h"

#include <algorithm>

namespace patchbay::scheduler {

void ForgetSlot(Trainer& trainer, std::uint32_t number) {
  const Slot slot = trainer.slots.at(number);
  trainer.free.erase(number);
  trainer.slots.erase(number);
  const auto filling = trainer.filling.find(slot.at);
  if (slot.state != protocol::SlotState::kFilling || filling == trainer.filling.end()) return;
  for (std::uint32_t i = 0; i < filling->second.shards.size(); ++i) {
    trainer.pending.erase({slot.at, i});
    trainer.unknown.erase({slot.at.epoch, slot.at.batch, trainer.rank, i});
  }
  trainer.filling.erase(filling);
  trainer.next = std::min(trainer.next, slot.at);
  ++trainer.batches_to_fence;
}

void LeaveRestingIfClear(Trainer& trainer, std::uint32_t number) {
  const auto it = trainer.slots.find(number);
  if (it == trainer.slots.end() || !it->second.rests || it->second.leases != 0) return;
  const std::uint64_t generation = it->second.generation;
  ForgetSlot(trainer, number);
  trainer.slots[number] = {generation, protocol::SlotState::kResting, {}, 0, 0, false};
}

bool FreeSlotIfClear(Trainer& trainer, std::uint32_t number) {
  const auto it = trainer.slots.find(number);
  if (it == trainer.slots.end()) return false;
  Slot& slot = it->second;
  if (slot.announced == 0 || slot.leases != 0) return false;
  slot.generation = slot.announced;
  slot.announced = 0;
  slot.rests = false;
  slot.state = protocol::SlotState::kFree;
  trainer.free.insert(number);
  return true;
}

}  // namespace patchbay::scheduler
