#include "scheduler/core/core_shares.h"

#include <algorithm>
#include <utility>

namespace patchbay::scheduler {

CoreShares::Parts CoreShares::PartsOf(const Worker& worker) const {
  Parts parts;
  for (const LeaseNumber& number : worker.tasks) {
    const Lease& lease = book_.At(number);
    if (lease.planning) continue;
    const Job& job = *table_.Find(lease.task.job);
    parts.runs = job.id;
    parts.runs_millis = job.tasks[lease.task.index].spec.resources.cpu_millis;
    break;
  }
  if (!worker.shards.empty()) {
    parts.makes = book_.At(*worker.shards.begin()).stream;
    parts.makes_millis = ShardNeed(worker).cpu_millis;
  }
  if (parts.runs == 0 || parts.makes == 0) return parts;
  parts.runs_millis /= 2;
  parts.makes_millis /= 2;
  return parts;
}

void CoreShares::Add(JobId job, std::uint32_t millis) {
  if (job == 0) return;
  Holding& held = held_[job];
  held.millis += millis;
  ++held.parts;
}

void CoreShares::Remove(JobId job, std::uint32_t millis) {
  if (job == 0) return;
  const auto held = held_.find(job);
  held->second.millis -= millis;
  if (--held->second.parts == 0) held_.erase(held);
}

void CoreShares::Count() {
  counted_at_ = event_.now;
  all_ = 0;
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (node.registered) all_ += node.capacity.cpu_millis;
  }
  ++counts_;
  const std::vector<WorkerId> changed = worker_table_.TakeReassigned();
  parts_.resize(worker_table_.workers().size());
  for (const WorkerId id : changed) {
    const Parts before = std::exchange(parts_[id], PartsOf(worker_table_.at(id)));
    if (parts_[id] == before) continue;
    Remove(before.runs, before.runs_millis);
    Remove(before.makes, before.makes_millis);
    Add(parts_[id].runs, parts_[id].runs_millis);
    Add(parts_[id].makes, parts_[id].makes_millis);
  }
}

const std::unordered_map<JobId, CoreShares::Holding>& CoreShares::Held() {
  if (event_.now - counted_at_ >= kShareAgeMs) Count();
  return held_;
}

/// Whether the trainer has a batch to go on with, and the times of its steps are its own.
bool CoreShares::KnowsPace(const Stream& stream, const Trainer& trainer) {
  return trainer.step_ms > 0 && stream.shard_us != 0 &&
         std::any_of(trainer.slots.begin(), trainer.slots.end(), [](const auto& slot) {
           return slot.second.state == protocol::SlotState::kFull;
         });
}

/// Cores that the trainer's consumption takes: the shards of its free slots, one batch at least as
/// long as it trains, in the time of a step. Where that is unknown: a core for each shard to lease.
std::uint64_t CoreShares::WantedBy(const Stream& stream, const Trainer& trainer) const {
  if (trainer.state != TrainerState::kAttached) return 0;
  if (!KnowsPace(stream, trainer)) return 1000 * trainer.pending.size();
  const auto since_ms = static_cast<double>(event_.now - trainer.taken_at);
  std::size_t shards = trainer.pending.size() + trainer.leases.size();
  if (since_ms < 2 * trainer.step_ms + kShareAgeMs) {
    const std::size_t batch = ShardsInRank(stream.geometry, trainer.next.batch, trainer.rank);
    shards = std::max(shards, batch);
  }
  const auto work_us = static_cast<double>(shards) * static_cast<double>(stream.shard_us);
  return static_cast<std::uint64_t>(work_us / std::max(trainer.step_ms, 1.0));
}

CoreShares::Share CoreShares::Of(const Job& job, const Stream* stream) {
  if (IsEnded(job.state)) return {};
  const auto found = Held().find(job.id);
  const std::uint32_t held = found == held_.end() ? 0 : found->second.millis;
  std::uint64_t wanted = job.ready_cpu_millis;
  bool known = stream != nullptr;
  if (stream != nullptr) {
    for (const auto& [rank, trainer] : stream->trainers) {
      wanted += WantedBy(*stream, trainer);
      known = known && KnowsPace(*stream, trainer);
    }
  }
  if (!known) wanted += held;
  return {static_cast<std::uint32_t>(std::min(wanted, all_)), held};
}

}  // namespace patchbay::scheduler
