// Which ready task goes next: among the tasks a worker has room for, the highest priority, then the
// oldest job, then the least need, then the order they became ready in.
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
  std::uint32_t group = 0;  ///< of its job; 0 = none
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
  struct JobTasks {
    std::deque<ReadyTask> tasks;
    std::uint32_t passed_over = 0;  ///< times a later task went before the first
  };
  struct Lane {
    Resources need;
    std::map<JobRank, JobTasks> jobs;
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
  /// Removes entry `at` of the lane's best job; a lane that empties is gone.
  ReadyTask Pop(Lane& lane, std::size_t at = 0);
  /// The job has ended: its entries go, and lanes that this empties.
  void Drop(const JobRank& rank);
  /// The tasks of the lane's best job, in the order they became ready in.
  static const JobTasks& Head(const Lane& lane) { return lane.jobs.begin()->second; }

  bool empty() const { return lanes_.empty(); }
  std::size_t lanes() const { return lanes_.size(); }
  /// Entries, stale ones included.
  std::uint64_t size() const { return size_; }

 private:
  std::map<Resources, Lane, ResourcesLess> lanes_;
  std::uint64_t size_ = 0;
};

}  // namespace patchbay::scheduler
