#include "scheduler/policy/ready_queue.h"

#include <iterator>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

bool ReadyQueue::Push(const JobRank& rank, const Resources& need, const ReadyTask& task) {
  auto it = lanes_.find(need);
  if (it == lanes_.end()) {
    if (lanes_.size() >= kMaxResourceShapes) return false;
    it = lanes_.emplace(need, Lane{need, {}}).first;
  }
  it->second.jobs[rank].tasks.push_back(task);
  ++size_;
  return true;
}

ReadyTask ReadyQueue::Pop(Lane& lane, std::size_t at) {
  const auto first = lane.jobs.begin();
  JobTasks& job = first->second;
  const ReadyTask task = job.tasks[at];
  if (at == 0) {
    job.tasks.pop_front();
    job.passed_over = 0;
  } else {
    job.tasks.erase(job.tasks.begin() + static_cast<std::ptrdiff_t>(at));
    ++job.passed_over;
  }
  --size_;
  if (job.tasks.empty()) lane.jobs.erase(first);
  const Resources need = lane.need;
  if (lane.jobs.empty()) lanes_.erase(need);
  return task;
}

void ReadyQueue::Drop(const JobRank& rank) {
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    auto& jobs = lane->second.jobs;
    if (const auto job = jobs.find(rank); job != jobs.end()) {
      size_ -= job->second.tasks.size();
      jobs.erase(job);
    }
    lane = jobs.empty() ? lanes_.erase(lane) : std::next(lane);
  }
}

}  // namespace patchbay::scheduler
