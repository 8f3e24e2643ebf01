// The order in which ready tasks go: among the tasks a worker has room for, by the shares of teams
// and users; of one user the highest priority, then the oldest job, then the least need, then the
// order they became ready in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "scheduler/policy/fair_share.h"
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

/// One lane per account and distinct resource request, so that a task that no worker has room for
/// delays only tasks of the same request. An account has at most kMaxResourceShapes lanes; further
/// tasks wait aside, in the order of their jobs, until one of its lanes is empty. So an account
/// whose requests no worker can meet delays only itself. Push and pop cost O(log jobs), Best
/// O(lanes) of the accounts that it looks at. Accounts with tasks are queued at `fair`.
class ReadyQueue {
 public:
  struct JobTasks {
    std::deque<ReadyTask> tasks;
    std::uint32_t times_skipped = 0;  ///< times a later task went before the first
  };
  struct Lane {
    AccountId account = 0;
    Resources need;
    std::map<JobRank, JobTasks> jobs;
  };

  explicit ReadyQueue(FairShare& fair) : fair_(fair) {}

  /// False when the task waits aside.
  bool Push(const JobRank& rank, AccountId account, const Resources& need, const ReadyTask& task);

  /// The best rank among the lanes of the first account with any for which `fits(account, need)`,
  /// or null. Work that meets a guarantee of GPUs or memory goes first.
  template <typename Fits>
  Lane* Best(const Fits& fits) {
    Lane* best = nullptr;
    const auto shortly = ShortOf(fits);
    const bool any_short = fair_.AnyShortInOrder([&](AccountId account) {
      best = BestOf(account, shortly);
      return best != nullptr;
    });
    if (any_short) return best;
    fair_.AnyInOrder([&](AccountId account) {
      best = BestOf(account, fits);
      return best != nullptr;
    });
    return best;
  }
  /// The fit of work whose team holds less GPUs or memory for it than it is guaranteed.
  template <typename Fits>
  auto ShortOf(const Fits& fits) const {
    return [this, &fits](AccountId account, const Resources& need) {
      return fair_.IsShort(account, AmountsOf(need)) && fits(account, need);
    };
  }
  /// The same of those accounts alone.
  template <typename Fits>
  Lane* BestAmong(const std::vector<AccountId>& accounts, const Fits& fits) {
    Lane* best = nullptr;
    const auto shortly = ShortOf(fits);
    for (const AccountId account : accounts) {
      if (!fair_.IsShort(account)) continue;
      if (best != nullptr && !fair_.IsBefore(account, best->account)) continue;
      if (Lane* const lane = BestOf(account, shortly); lane != nullptr) best = lane;
    }
    if (best != nullptr) return best;
    for (const AccountId account : accounts) {
      if (best != nullptr && !fair_.IsBefore(account, best->account)) continue;
      if (Lane* const lane = BestOf(account, fits); lane != nullptr) best = lane;
    }
    return best;
  }
  /// The same of that account alone.
  template <typename Fits>
  Lane* BestOf(AccountId account, const Fits& fits) {
    Lane* best = nullptr;
    const auto owner = owners_.find(account);
    if (owner == owners_.end()) return best;
    for (auto& [need, lane] : owner->second.lanes) {
      if (!fits(account, need)) continue;
      if (best == nullptr || lane.jobs.begin()->first < best->jobs.begin()->first) best = &lane;
    }
    return best;
  }
  /// Removes entry `at` of the lane's best job; a lane that empties is gone.
  ReadyTask Pop(Lane& lane, std::size_t at = 0);
  /// Removes the entries of an ended job, and lanes left empty.
  void Drop(const JobRank& rank, AccountId account);
  /// The tasks of the lane's best job, in the order they became ready in.
  static const JobTasks& Head(const Lane& lane) { return lane.jobs.begin()->second; }

  /// Accounts whose lanes have another first task since they were taken last, without a pop: some
  /// are named twice, or have no tasks.
  std::vector<AccountId> TakeFresh() { return std::exchange(fresh_, {}); }
  bool Has(AccountId account) const { return owners_.count(account) != 0; }
  /// The need of one of the job's entries, the least if it does not wait aside; null: it has none.
  const Resources* NeedOf(const JobRank& rank, AccountId account) const;

  bool empty() const { return owners_.empty(); }
  /// The first entry not waiting aside for which `wanted` is true, or null. Slow: for tests and the
  /// simulator.
  template <typename Wanted>
  const ReadyTask* FindEntry(const Wanted& wanted) const {
    for (const auto& [account, owner] : owners_) {
      for (const auto& [need, lane] : owner.lanes) {
        for (const auto& [rank, job] : lane.jobs) {
          for (const ReadyTask& entry : job.tasks) {
            if (wanted(need, entry)) return &entry;
          }
        }
      }
    }
    return nullptr;
  }
  /// The number of entries, including stale ones and entries that wait aside.
  std::uint64_t size() const { return size_; }
  /// Holds lanes and counts against each other. Slow: for tests and the simulator.
  Status Check() const;

 private:
  struct Owner {
    std::map<Resources, Lane, ResourcesLess> lanes;
    std::map<JobRank, std::deque<std::pair<Resources, ReadyTask>>> aside;
  };
  using Owners = std::map<AccountId, Owner>;

  static bool MayJoin(const Owner& owner, const Resources& need);
  void Join(Owners::iterator owner, const JobRank& rank, const Resources& need,
            const ReadyTask& task);
  void TakeAside(Owners::iterator owner);

  FairShare& fair_;
  Owners owners_;
  std::vector<AccountId> fresh_;
  std::uint64_t size_ = 0;
};

}  // namespace patchbay::scheduler
