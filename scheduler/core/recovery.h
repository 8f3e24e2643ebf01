// Recovery after a restart: worker processes that a former incarnation of the scheduler knew, and
// processes that may still write into rings under its leases. Private to scheduler/core.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/worker_table.h"
#include "scheduler/state/job_table.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// A worker process of a former incarnation's journal, until it registers or is known to have
/// ended.
struct Unaccounted {
  std::string host_identity;
  std::int64_t pid = 0;
  std::uint64_t worker_incarnation = 0, agent_incarnation = 0;
};

/// Invariants: every process that is unaccounted for is a worker in the journal; held-back tasks
/// are released once all processes are accounted for, or once nodes have had as much time to come
/// back as a silent worker has.
class Recovery {
 public:
  Recovery(const EventContext& event, const CoreOptions& options, const WorkerTable& worker_table)
      : event_(event), options_(options), worker_table_(worker_table) {}

  /// `next_job`: the first that this incarnation will accept.
  void Begin(const std::map<WorkerPlace, KnownWorker>& known, JobId next_job);
  /// A former incarnation of the scheduler accepted the job, and may have sent its trainers facts
  /// that this one does not have: its leases may still be in use, even if only by shards on their
  /// way from workers that have ended.
  bool IsFromBefore(JobId job) const { return job < next_job_; }
  /// Trainers have had as much time to come back as a silent one has.
  bool TrainersAreBack() const { return event_.now >= begun_ + options_.forget_trainer_ms; }
  /// Two lease times have passed.
  bool IsOver() const { return event_.now >= begun_ + 2 * options_.lease_ms; }

  /// Whether grants may be made: no process may still write into the trainer's slots under leases
  /// of a former incarnation: each of Trainer::holders has ended, or has registered and dropped
  /// those leases. Removes the holders that meet this from Trainer::holders.
  bool AllowsGrants(Trainer& trainer) const;
  /// The name of the trainer's first holder, for messages.
  std::string NameHolder(const Trainer& trainer) const;

  /// Null when the place is accounted for.
  const Unaccounted* Find(const WorkerPlace& place) const;
  const std::map<WorkerPlace, Unaccounted>& unaccounted() const { return unaccounted_; }
  /// Places of the node whose processes belong to another agent than that one.
  std::vector<WorkerPlace> OfOtherAgents(const std::string& node,
                                         std::uint64_t agent_incarnation) const;
  /// Takes out a process that is dead, or is back.
  void AccountFor(WorkerPlace place);
  /// Nodes of unaccounted workers that have not registered yet and still may: as long as a
  /// silent node stays listed.
  std::set<std::string> AwaitedNodes() const;
  /// Places of nodes that are no longer awaited. The caller journals them and calls AccountFor.
  std::vector<WorkerPlace> Lost() const;
  /// Nodes that did not return in time.
  const std::set<std::string>& lost_nodes() const { return lost_nodes_; }
  void Lose(const WorkerPlace& place);
  /// True once per interval, when returned workers are reminded of leases to drop, and missing ones
  /// are to be killed.
  bool SettlingIsDue();

  /// A ready task of the former incarnation, whose holder may yet be heard of.
  void HoldBack(const TaskId& task) { held_back_.push_back(task); }
  bool HoldsBack() const { return !held_back_.empty(); }
  /// Tasks that may run now; each is returned once.
  std::vector<TaskId> TakeHeldBack();

  Status Check(const std::map<WorkerPlace, KnownWorker>& known) const;

 private:
  bool IsBack(const std::string& node) const;

  const EventContext& event_;
  const CoreOptions& options_;
  const WorkerTable& worker_table_;
  std::map<WorkerPlace, Unaccounted> unaccounted_;
  std::set<std::string> lost_nodes_;
  TimeMs begun_ = 0, settle_at_ = 0;
  std::vector<TaskId> held_back_;
  JobId next_job_ = 0;
};

}  // namespace patchbay::scheduler
