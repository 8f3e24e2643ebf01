#include "runtime/client/trainer_core.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace patchbay::client {

protocol::SlotRow ToRow(const data::SlotReport& report) {
  protocol::SlotRow row;
  row.slot = report.slot;
  row.generation = report.generation;
  row.epoch = report.at.epoch;
  row.batch = report.at.batch;
  row.counted = report.counted;
  switch (report.phase) {
    case data::SlotPhase::kFree:
      row.state = protocol::SlotState::kFree;
      break;
    case data::SlotPhase::kFilling:
      row.state = protocol::SlotState::kFilling;
      break;
    case data::SlotPhase::kFull:
    case data::SlotPhase::kInUse:
      row.state = protocol::SlotState::kFull;
      break;
    case data::SlotPhase::kResting:
    case data::SlotPhase::kSpare:
      row.state = protocol::SlotState::kResting;
      break;
  }
  return row;
}

TrainerCore::TrainerCore(std::unique_ptr<data::Ring> ring) : ring_(std::move(ring)) {
  ring_->SetEvents(this);
}

void TrainerCore::SetLoop(control::EventLoop* loop, std::function<void()> flush) {
  const std::lock_guard lock(mu_);
  loop_ = loop;
  flush_ = std::move(flush);
  flush_posted_ = false;
}

void TrainerCore::PostFlush() {
  if (loop_ == nullptr || flush_posted_) return;
  flush_posted_ = true;
  loop_->Post(flush_);
}

TrainerCore::Outbox TrainerCore::TakeOutbox() {
  ReleasePassed();
  const std::lock_guard lock(mu_);
  flush_posted_ = false;
  Outbox taken = std::exchange(outbox_, {});
  taken.waiting_for_fences = !unreleased_.empty();
  return taken;
}

void TrainerCore::Return(Outbox outbox) {
  const std::lock_guard lock(mu_);
  const auto put_before = [](auto& older, auto& newer) {
    older.insert(older.end(), std::make_move_iterator(newer.begin()),
                 std::make_move_iterator(newer.end()));
    newer = std::move(older);
  };
  put_before(outbox.counted, outbox_.counted);
  put_before(outbox.freed, outbox_.freed);
  put_before(outbox.fenced, outbox_.fenced);
}

void TrainerCore::OnCounted(const ShardId& shard, const LeaseNumber& lease) {
  const std::lock_guard lock(mu_);
  outbox_.counted.push_back({lease, shard});
  PostFlush();
}

void TrainerCore::OnSlotFree(const data::SlotReport& slot) {
  const std::lock_guard lock(mu_);
  outbox_.freed.push_back(ToRow(slot));
  PostFlush();
}

void TrainerCore::OnFenced(const data::FenceOutcome& outcome) {
  const std::lock_guard lock(mu_);
  outbox_.fenced.push_back(outcome);
  PostFlush();
}

void TrainerCore::ReleaseSlot(std::uint32_t slot, std::uint64_t generation,
                              std::vector<DeviceFence> fences) {
  if (fences.empty()) return ring_->Release(slot, generation);
  const std::lock_guard lock(mu_);
  unreleased_.push_back(UnreleasedSlot{slot, generation, std::move(fences)});
  PostFlush();
}

bool TrainerCore::HasUnreleasedSlots() {
  const std::lock_guard lock(mu_);
  return !unreleased_.empty();
}

void TrainerCore::ReleasePassed() {
  std::vector<UnreleasedSlot> waiting;
  {
    const std::lock_guard lock(mu_);
    waiting.swap(unreleased_);
  }
  std::vector<UnreleasedSlot> rest;
  for (UnreleasedSlot& slot : waiting) {
    std::erase_if(slot.fences, [](const DeviceFence& fence) { return fence(); });
    if (slot.fences.empty()) {
      ring_->Release(slot.slot, slot.generation);
    } else {
      rest.push_back(std::move(slot));
    }
  }
  const std::lock_guard lock(mu_);
  unreleased_.insert(unreleased_.end(), std::make_move_iterator(rest.begin()),
                     std::make_move_iterator(rest.end()));
}

SlotHold::~SlotHold() {
  if (getpid() == owner_) {
    core_->ReleaseSlot(slot_, generation_, std::move(fences_));
    return;
  }
  // A forked child has a copy of the parent's objects, whose locks may be held.
  (void)new std::shared_ptr<TrainerCore>(std::move(core_));
}

}  // namespace patchbay::client
