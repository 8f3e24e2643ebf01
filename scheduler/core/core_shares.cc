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

CoreShares::Share CoreShares::Of(const Job& job, const Stream* stream) {
  if (IsEnded(job.state)) return {};
  const auto found = Held().find(job.id);
  const std::uint32_t held = found == held_.end() ? 0 : found->second;
  std::uint64_t more = job.ready_cpu_millis;
  if (stream != nullptr) {
    for (const auto& [rank, trainer] : stream->trainers) {
      if (trainer.state == TrainerState::kAttached) more += 1000 * trainer.pending.size();
    }
  }
  const std::uint64_t wanted = std::max<std::uint64_t>(held, std::min(held + more, all_));
  return {static_cast<std::uint32_t>(wanted), held};
}

}  // namespace patchbay::scheduler
