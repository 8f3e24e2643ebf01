// The order in which ready tasks go: among the tasks a worker has room for, the highest priority,
// then the oldest job, then the least need, then the order they became ready in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "scheduler/policy/resources.h"

namespace patchbay::scheduler {

/// An entry of the queue. It is stale when the task's queue_stamp has moved on.
struct ReadyTask {
  TaskId task;
  std::uint32_t stamp = 0;
  std::uint32_t group = 0;  ///< group of its job; 0 = none
};

/// Higher priority first, then submission order.
struct JobRank {
  std::int32_t priority = 0;
  JobId job = 0;
  bool operator<(const JobRank& other) const {
    return priority != other.priority ? priority > other.priority : job < other.job;
  }
};

/// One lane per distinct resource request, so that a task that no worker has room for delays only
/// tasks of the same request. A key has tasks in at most kMaxResourceShapes lanes; further ones
/// wait aside, in the order of their jobs, until one of its lanes has none of its tasks left, and
/// other keys' tasks may go first. So a key whose requests no worker can meet delays only itself.
/// Push and pop cost O(log jobs), Best O(lanes).
class ReadyQueue {
 private:
  /// The tasks of one key.
  struct Owner {
    std::map<Resources, std::size_t, ResourcesLess> jobs;  ///< with tasks in the lane of that need
    std::map<JobRank, std::deque<std::pair<Resources, ReadyTask>>> aside;
  };
  using Owners = std::map<std::string, Owner>;

 public:
  struct JobTasks {
    std::deque<ReadyTask> tasks;
    std::uint32_t times_skipped = 0;  ///< times a later task went before the first
    Owners::iterator owner;
  };
  struct Lane {
    Resources need;
    std::map<JobRank, JobTasks> jobs;
  };

  /// `key`: the job's submitter. False when the task waits aside.
  bool Push(const JobRank& rank, const std::string& key, const Resources& need,
            const ReadyTask& task);

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
  /// Removes the entries of an ended job, and lanes left empty.
  void Drop(const JobRank& rank, const std::string& key);
  /// The tasks of the lane's best job, in the order they became ready in.
  static const JobTasks& Head(const Lane& lane) { return lane.jobs.begin()->second; }

  /// The need of one of the job's entries, the least if it does not wait aside; null: it has none.
  const Resources* NeedOf(const JobRank& rank, const std::string& key) const;

  bool empty() const { return lanes_.empty(); }
  std::size_t lanes() const { return lanes_.size(); }
  /// The first entry not waiting aside for which `wanted` is true, or null. Slow: for tests and the
  /// simulator.
  template <typename Wanted>
  const ReadyTask* FindEntry(const Wanted& wanted) const {
    for (const auto& [need, lane] : lanes_) {
      for (const auto& [rank, job] : lane.jobs) {
        for (const ReadyTask& entry : job.tasks) {
          if (wanted(need, entry)) return &entry;
        }
      }
    }
    return nullptr;
  }
  /// The number of entries, including stale ones and entries that wait aside.
  std::uint64_t size() const { return size_; }
  /// Holds lanes, keys and counts against each other. Slow: for tests and the simulator.
  Status Check() const;

 private:
  using JobInLane = std::map<JobRank, JobTasks>::iterator;

  static bool MayJoin(const Owner& owner, const Resources& need);
  void Join(Owners::iterator owner, const JobRank& rank, const Resources& need,
            const ReadyTask& task);
  void Leave(Lane& lane, JobInLane job);
  void TakeAside(Owners::iterator owner);

  std::map<Resources, Lane, ResourcesLess> lanes_;
  Owners owners_;
  std::uint64_t size_ = 0;
};

}  // namespace patchbay::scheduler
