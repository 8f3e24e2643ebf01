#include "scheduler/policy/ready_queue.h"

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

bool ReadyQueue::Push(const JobRank& rank, const std::string& key, const Resources& need,
                      const ReadyTask& task) {
  ++size_;
  if (const auto lane = lanes_.find(need); lane != lanes_.end()) {
    const auto job = lane->second.jobs.find(rank);
    if (job != lane->second.jobs.end()) {
      job->second.tasks.push_back(task);
      return true;
    }
  }
  const auto owner = owners_.try_emplace(key).first;
  if (!MayJoin(owner->second, need)) {
    owner->second.aside[rank].emplace_back(need, task);
    return false;
  }
  Join(owner, rank, need, task);
  return true;
}

bool ReadyQueue::MayJoin(const Owner& owner, const Resources& need) {
  return owner.jobs.size() < kMaxResourceShapes || owner.jobs.count(need) != 0;
}

void ReadyQueue::Join(Owners::iterator owner, const JobRank& rank, const Resources& need,
                      const ReadyTask& task) {
  Lane& lane = lanes_[need];
  lane.need = need;
  const auto [job, fresh] = lane.jobs.try_emplace(rank);
  if (fresh) {
    job->second.owner = owner;
    ++owner->second.jobs[need];
  }
  job->second.tasks.push_back(task);
}

/// The job has no tasks in the lane any more, which may be gone then.
void ReadyQueue::Leave(Lane& lane, JobInLane job) {
  const Resources need = lane.need;
  const auto owner = job->second.owner;
  lane.jobs.erase(job);
  if (lane.jobs.empty()) lanes_.erase(need);
  const auto count = owner->second.jobs.find(need);
  if (--count->second == 0) owner->second.jobs.erase(count);
}

/// Tasks that wait aside take the room that the key's others left; a key without tasks is gone.
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
  if (owner->second.jobs.empty()) owners_.erase(owner);
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
  if (job.tasks.empty()) {
    const auto owner = job.owner;
    Leave(lane, first);
    TakeAside(owner);
  }
  return task;
}

void ReadyQueue::Drop(const JobRank& rank, const std::string& key) {
  const auto owner = owners_.find(key);
  if (owner == owners_.end()) return;
  if (const auto aside = owner->second.aside.find(rank); aside != owner->second.aside.end()) {
    size_ -= aside->second.size();
    owner->second.aside.erase(aside);
  }
  const auto needs = owner->second.jobs;
  for (const auto& [need, count] : needs) {
    Lane& lane = lanes_.at(need);
    const auto job = lane.jobs.find(rank);
    if (job == lane.jobs.end()) continue;
    size_ -= job->second.tasks.size();
    Leave(lane, job);
  }
  TakeAside(owner);
}

const Resources* ReadyQueue::NeedOf(const JobRank& rank, const std::string& key) const {
  const auto owner = owners_.find(key);
  if (owner == owners_.end()) return nullptr;
  for (const auto& [need, count] : owner->second.jobs) {
    if (lanes_.at(need).jobs.count(rank) != 0) return &need;
  }
  const auto aside = owner->second.aside.find(rank);
  return aside == owner->second.aside.end() ? nullptr : &aside->second.front().first;
}

Status ReadyQueue::Check() const {
  std::map<std::pair<std::string, Resources>, std::size_t,
           decltype([](const auto& a, const auto& b) {
             return a.first != b.first ? a.first < b.first : ResourcesLess()(a.second, b.second);
           })>
      jobs;
  std::uint64_t entries = 0;
  for (const auto& [need, lane] : lanes_) {
    for (const auto& [rank, tasks] : lane.jobs) {
      ++jobs[{tasks.owner->first, need}];
      entries += tasks.tasks.size();
    }
  }
  for (const auto& [key, owner] : owners_) {
    for (const auto& [need, count] : owner.jobs) {
      const auto counted = jobs.find({key, need});
      if (counted == jobs.end() || counted->second != count) {
        return Internal("check ready queue: key ", key, ": jobs in lanes");
      }
    }
    for (const auto& [rank, tasks] : owner.aside) entries += tasks.size();
    const bool waits = !owner.aside.empty();
    if (waits && MayJoin(owner, owner.aside.begin()->second.front().first)) {
      return Internal("check ready queue: key ", key, ": a task aside has room");
    }
  }
  return entries == size_ ? absl::OkStatus() : Internal("check ready queue: entries");
}

}  // namespace patchbay::scheduler
