#include "scheduler/policy/ready_queue.h"

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

bool ReadyQueue::Push(const JobRank& rank, AccountId account, const Resources& need,
                      const ReadyTask& task) {
  ++size_;
  const auto [owner, fresh] = owners_.try_emplace(account);
  if (fresh) fair_.Enqueue(account);
  if (!MayJoin(owner->second, need)) {
    owner->second.aside[rank].emplace_back(need, task);
    return false;
  }
  Join(owner, rank, need, task);
  return true;
}

bool ReadyQueue::MayJoin(const Owner& owner, const Resources& need) {
  return owner.lanes.size() < kMaxResourceShapes || owner.lanes.count(need) != 0;
}

void ReadyQueue::Join(Owners::iterator owner, const JobRank& rank, const Resources& need,
                      const ReadyTask& task) {
  Lane& lane = owner->second.lanes[need];
  lane.account = owner->first;
  lane.need = need;
  JobTasks& job = lane.jobs[rank];
  job.tasks.push_back(task);
  const bool first = job.tasks.size() == 1 && &lane.jobs.begin()->second == &job;
  if (first && (fresh_.empty() || fresh_.back() != owner->first)) fresh_.push_back(owner->first);
}

/// Tasks that wait aside take the room that others left; an account without tasks is gone.
void ReadyQueue::TakeAside(Owners::iterator owner) {
  auto& aside = owner->second.aside;
  while (!aside.empty()) {
    auto& [rank, tasks] = *aside.begin();
    const auto& [need, task] = tasks.front();
    if (!MayJoin(owner->second, need)) return;
    Join(owner, rank, need, task);
    tasks.pop_front();
    if (tasks.empty()) aside.erase(aside.begin());
  }
  if (!owner->second.lanes.empty()) return;
  fair_.Dequeue(owner->first);
  owners_.erase(owner);
}

ReadyTask ReadyQueue::Pop(Lane& lane, std::size_t at) {
  const auto first = lane.jobs.begin();
  JobTasks& job = first->second;
  const ReadyTask task = job.tasks[at];
  if (at == 0) {
    job.tasks.pop_front();
    job.times_skipped = 0;
  } else {
    job.tasks.erase(job.tasks.begin() + static_cast<std::ptrdiff_t>(at));
    ++job.times_skipped;
  }
  --size_;
  if (!job.tasks.empty()) return task;
  lane.jobs.erase(first);
  if (!lane.jobs.empty()) return task;
  const auto owner = owners_.find(lane.account);
  owner->second.lanes.erase(Resources(lane.need));
  TakeAside(owner);
  return task;
}

void ReadyQueue::Drop(const JobRank& rank, AccountId account) {
  const auto owner = owners_.find(account);
  if (owner == owners_.end()) return;
  if (const auto aside = owner->second.aside.find(rank); aside != owner->second.aside.end()) {
    size_ -= aside->second.size();
    owner->second.aside.erase(aside);
  }
  auto& lanes = owner->second.lanes;
  for (auto lane = lanes.begin(); lane != lanes.end();) {
    const auto job = lane->second.jobs.find(rank);
    if (job != lane->second.jobs.end()) {
      size_ -= job->second.tasks.size();
      lane->second.jobs.erase(job);
    }
    lane = lane->second.jobs.empty() ? lanes.erase(lane) : std::next(lane);
  }
  TakeAside(owner);
}

const Resources* ReadyQueue::NeedOf(const JobRank& rank, AccountId account) const {
  const auto owner = owners_.find(account);
  if (owner == owners_.end()) return nullptr;
  for (const auto& [need, lane] : owner->second.lanes) {
    if (lane.jobs.count(rank) != 0) return &need;
  }
  const auto aside = owner->second.aside.find(rank);
  return aside == owner->second.aside.end() ? nullptr : &aside->second.front().first;
}

Status ReadyQueue::Check() const {
  std::uint64_t entries = 0;
  for (const auto& [account, owner] : owners_) {
    if (owner.lanes.empty()) return Internal("check ready queue: an account without tasks");
    for (const auto& [need, lane] : owner.lanes) {
      if (lane.jobs.empty() || lane.account != account) {
        return Internal("check ready queue: account ", account, ": a lane without tasks");
      }
      for (const auto& [rank, job] : lane.jobs) entries += job.tasks.size();
    }
    for (const auto& [rank, tasks] : owner.aside) entries += tasks.size();
    if (!owner.aside.empty() && MayJoin(owner, owner.aside.begin()->second.front().first)) {
      return Internal("check ready queue: account ", account, ": a task aside has room");
    }
  }
  return entries == size_ ? absl::OkStatus() : Internal("check ready queue: entries");
}

}  // namespace patchbay::scheduler
