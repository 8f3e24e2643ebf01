#include "scheduler/core/core_shares.h"

#include <algorithm>

namespace patchbay::scheduler {

void CoreShares::Add(const Worker& worker) {
  const Lease* runs = nullptr;
  for (const LeaseNumber& number : worker.tasks) {
    const Lease& lease = book_.At(number);
    if (lease.planning) continue;
    runs = &lease;
    break;
  }
  const bool makes = !worker.shards.empty();
  const std::uint32_t parts = runs != nullptr && makes ? 2 : 1;
  if (makes) {
    held_[book_.At(*worker.shards.begin()).stream] += ShardNeed(worker).cpu_millis / parts;
  }
  if (runs == nullptr) return;
  const Job& job = *table_.Find(runs->task.job);
  held_[job.id] += job.tasks[runs->task.index].spec.resources.cpu_millis / parts;
}

void CoreShares::Count() {
  counted_at_ = event_.now;
  ++counts_;
  held_.clear();
  all_ = 0;
  for (const Worker& worker : worker_table_.workers()) Add(worker);
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (node.registered) all_ += node.capacity.cpu_millis;
  }
}

const std::unordered_map<JobId, std::uint32_t>& CoreShares::Held() {
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
  const std::uint32_t held = found == held_.end() ? 0 : found->second;
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
