// Which ready task goes next: among the tasks a worker has room for, the highest priority, then the
// oldest job, then the order they became ready in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/policy/resources.h"

namespace patchbay::scheduler {

/// An entry of the queue. It is stale when the task's queue_stamp has moved on.
struct ReadyTask {
  TaskId task;
  std::uint32_t stamp = 0;
};

/// Higher priority first, then submission order.
struct JobRank {
  std::int32_t priority = 0;
  JobId job = 0;
  bool operator<(const JobRank& other) const {
    return priority != other.priority ? priority > other.priority : job < other.job;
  }
};

/// One lane per distinct resource request, so that a task nobody has room for holds up only its
/// like. Push and pop cost O(log jobs); lanes are at most kMaxResourceShapes.
class ReadyQueue {
 public:
  struct Lane {
    Resources need;
    std::map<JobRank, std::deque<ReadyTask>> jobs;
  };

  /// False when the lanes are used up by other needs: the caller keeps the task and tries later.
  bool Push(const JobRank& rank, const Resources& need, const ReadyTask& task);

  /// The best rank among the lanes whose need satisfies `fits`, or null.
  template <typename Fits>
  Lane* Best(const Fits& fits) {
    Lane* best = nullptr;
    for (auto& [need, lane] : lanes_) {
      if (!fits(need)) continue;
      if (best == nullptr || lane.jobs.begin()->first < best->jobs.begin()->first) best = &lane;
    }
    return best;
  }
  /// Removes the first entry of the lane; a lane that empties is gone.
  ReadyTask Pop(Lane& lane);
  /// The first entry, without taking it.
  static const ReadyTask& Front(const Lane& lane) { return lane.jobs.begin()->second.front(); }

  bool empty() const { return lanes_.empty(); }
  std::size_t lanes() const { return lanes_.size(); }
  /// Entries, stale ones included.
  std::uint64_t size() const { return size_; }

 private:
  std::map<Resources, Lane, ResourcesLess> lanes_;
  std::uint64_t size_ = 0;
};

}  // namespace patchbay::scheduler
