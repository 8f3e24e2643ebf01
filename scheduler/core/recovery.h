// What a former incarnation of the scheduler may have left about: worker processes that hold its
// leases. Private to scheduler/core.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/turn.h"
#include "scheduler/state/cluster_table.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// A worker process of a former incarnation's journal, until it is known to hold nothing of it.
struct Unaccounted {
  bool registered = false;  ///< it is back, and still holds `shards`
  std::set<LeaseNumber> shards;
  std::string host_identity;
  std::uint64_t worker_incarnation = 0, agent_incarnation = 0;
};

/// Invariants: who is unaccounted for is a worker the journal knows, as that process; who is back
/// holds shards still; held-back tasks are let go once all are accounted for or two lease times are
/// over.
class Recovery {
 public:
  Recovery(const Turn& turn, const CoreOptions& options) : turn_(turn), options_(options) {}

  /// `next_job`: the first that this incarnation will accept.
  void Begin(const std::map<WorkerPlace, KnownWorker>& known, JobId next_job);
  /// A former incarnation accepted the job, and may have told its trainers what nobody here knows:
  /// its leases may be about, were it as shards that ended workers have sent.
  bool IsFromBefore(JobId job) const { return job < next_job_; }
  /// The journal knew workers, whose nodes may be coming back.
  bool had_workers() const { return had_workers_; }
  /// Two lease times have passed.
  bool IsOver() const { return turn_.now >= until_; }
  /// Grants are cut once no process of a former incarnation can write into the slots of a trainer
  /// on that host: all are accounted for, or two lease times have passed and none of the missing is
  /// on it. One that registered before its agent did may be on any.
  bool AllowsGrants(const std::string& host_identity) const;

  /// Null when the place is accounted for.
  Unaccounted* Find(const WorkerPlace& place);
  const std::map<WorkerPlace, Unaccounted>& unaccounted() const { return unaccounted_; }
  /// Places of the node whose processes belong to another agent than that one.
  std::vector<WorkerPlace> OfOtherAgents(const std::string& node,
                                         std::uint64_t agent_incarnation) const;
  /// That worker is dead, or holds nothing of a former incarnation any more.
  void AccountFor(WorkerPlace place);
  /// Grants may be cut that could not before; for the dispatch of shards to look at and clear.
  bool changed() const { return changed_; }
  void ClearChanged() { changed_ = false; }
  /// True once each interval while somebody is missing: they are to be killed.
  bool KillIsDue();

  /// A ready task of the former incarnation, whose holder may yet be heard of.
  void HoldBack(const TaskId& task) { held_back_.push_back(task); }
  /// Those that may run now, once.
  std::vector<TaskId> TakeHeldBack();

  Status Check(const std::map<WorkerPlace, KnownWorker>& known) const;

 private:
  const Turn& turn_;
  const CoreOptions& options_;
  std::map<WorkerPlace, Unaccounted> unaccounted_;
  TimeMs until_ = 0, kill_at_ = 0;
  std::vector<TaskId> held_back_;
  JobId next_job_ = 0;
  bool had_workers_ = false, changed_ = false;
};

}  // namespace patchbay::scheduler
