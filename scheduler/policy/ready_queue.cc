#include "scheduler/policy/ready_queue.h"

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

bool ReadyQueue::Push(const JobRank& rank, const Resources& need, const ReadyTask& task) {
  auto it = lanes_.find(need);
  if (it == lanes_.end()) {
    if (lanes_.size() >= kMaxResourceShapes) return false;
    it = lanes_.emplace(need, Lane{need, {}}).first;
  }
  it->second.jobs[rank].push_back(task);
  ++size_;
  return true;
}

ReadyTask ReadyQueue::Pop(Lane& lane) {
  const auto first = lane.jobs.begin();
  const ReadyTask task = first->second.front();
  first->second.pop_front();
  --size_;
  if (first->second.empty()) lane.jobs.erase(first);
  const Resources need = lane.need;
  if (lane.jobs.empty()) lanes_.erase(need);
  return task;
}

}  // namespace patchbay::scheduler
