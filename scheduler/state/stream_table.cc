#include "scheduler/state/stream_table.h"

#include <algorithm>
#include <utility>

#include "runtime/model/stream/planned_stream.h"

namespace patchbay::scheduler {

Status ReadStreamPlan(const std::string& result, std::uint32_t world_size, Stream& stream) {
  PB_ASSIGN_OR_RETURN(PlannedStream planned, DecodePlannedStream(result));
  if (planned.geometry.world_size != world_size) {
    return InvalidArgument("read stream plan: it is for ", planned.geometry.world_size,
                           " ranks, the job for ", world_size);
  }
  stream.geometry = planned.geometry;
  stream.numerics = planned.numerics;
  stream.start = planned.start;
  stream.byte_versions = std::move(planned.byte_versions);
  stream.images = std::move(planned.images);
  stream.plan = std::move(planned.plan);
  stream.manifest = std::move(planned.manifest);
  stream.plan_digest = Sha256Of(stream.plan);
  return absl::OkStatus();
}

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

std::uint64_t PatchesBefore(const StreamGeometry& geometry, Position at) {
  const std::uint64_t last = BatchesPerEpoch(geometry) - 1;
  const std::uint64_t epoch = last * geometry.global_batch + PatchesInBatch(geometry, last);
  return at.epoch * epoch + at.batch * geometry.global_batch;
}

std::uint64_t Stream::PatchesTotal() const {
  if (!geometry.units.empty()) return geometry.patches_per_epoch;
  const std::uint64_t epoch = PatchesBefore(geometry, {1, 0});
  return std::max<std::uint64_t>(1, (patches_made + epoch - 1) / epoch) * epoch;
}

/// A trainer takes batches in their order: a full slot behind a batch that fills helps nobody.
/// Units have no order.
bool Trainer::Waits(bool in_order) const {
  if (state != TrainerState::kAttached || slots.empty()) return false;
  return std::none_of(slots.begin(), slots.end(), [&](const auto& entry) {
    const Slot& slot = entry.second;
    return slot.state == protocol::SlotState::kFull &&
           (!in_order || filling.empty() || slot.at < filling.begin()->first);
  });
}

bool Stream::LookForStall(TimeMs now) {
  const bool waits = std::any_of(trainers.begin(), trainers.end(), [&](const auto& entry) {
    return entry.second.Waits(geometry.units.empty());
  });
  if (waits && looked_at != 0) stalled_ms += now - looked_at;
  looked_at = now;
  if (!trainers.empty()) past.Look(now, patches_made, stalled_ms);
  return waits;
}

}  // namespace patchbay::scheduler
