// An audit of the scheduler against a model of the jobs that is built from the journal's records
// and the messages alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/wire/protocol/messages.h"
#include "scheduler/core/core.h"
#include "scheduler/state/job_table.h"
#include "scheduler/state/records.h"

namespace patchbay::sim {

/// A task as the journal has it.
struct ModelTask {
  protocol::TaskSpec spec;
  protocol::TaskState state = protocol::TaskState::kWaiting;
  std::string result;
  unsigned grants = 0;  ///< since it last became open
  std::uint32_t spawned_by = UINT32_MAX;
  bool superseded = false;  ///< its spawner ran again
  bool IsSummary() const { return spec.after_failures && spec.depends_on.empty(); }
  bool IsOpen() const { return state == protocol::TaskState::kWaiting; }
};

struct ModelJob {
  std::string kind, submitter, team;
  std::int32_t priority = 0;
  std::vector<ModelTask> tasks;
  std::set<std::uint32_t> failed_groups, detached;
  protocol::JobState state = protocol::JobState::kRunning;
  unsigned retries = 0;
  std::map<std::uint64_t, std::int32_t> units;  ///< finished -> code
};

/// The process that a lease was granted to, and its capacity.
struct Holder {
  std::uint64_t incarnation = 0;
  protocol::Resources capacity;
};

/// Reports the first broken promise through `violation`.
class Audit {
 public:
  explicit Audit(std::function<void(const std::string&)> violation);

  /// A new scheduler process, which has only the durable state.
  void SchedulerStarted();
  void Durable(const scheduler::Record& record);
  /// A record is on its way to the disk: the scheduler acts on it already.
  void Emitted(const scheduler::Record& record);

  /// Messages that leave the scheduler.
  void GrantedTask(const Holder& holder, const protocol::TaskLease& lease);
  void GrantedShard(const Holder& holder, const protocol::ShardLease& lease, std::uint64_t ring);
  void Void(const LeaseNumber& lease) { void_.insert(lease); }
  void VoidAllOf(std::uint64_t worker_incarnation);
  /// Voids the tasks that the worker was given so far, not its shards: these are fenced.
  void LostTasksOf(std::uint64_t worker_incarnation);
  void Fencing(std::uint64_t ring, const protocol::FenceShard& fence);
  void Acknowledged(const LeaseNumber& lease, const TaskId& task, bool succeeded);
  void Described(const protocol::JobRow& row);
  void CancelAcknowledged(JobId job);
  void EndTold(JobId stream);
  void RetryAcknowledged(JobId job, std::uint64_t tasks);
  void DetachAcknowledged(JobId job, std::uint32_t rank);
  void UnitAcknowledged(JobId job, std::uint64_t unit);
  bool IsFinished(JobId job, std::uint64_t unit) const;
  void WorkerAcknowledged(std::uint64_t worker_incarnation);
  void ExitAcknowledged(std::uint64_t worker_incarnation);
  void IncarnationTold(std::uint32_t incarnation);
  /// All messages of one event have been seen: leases granted together must be in order.
  void EndOfEvent();

  /// The trainer's ring answered a fence: this lease and older ones of the shard are void there.
  void Fenced(std::uint64_t ring, const ShardId& shard, const LeaseNumber& lease);
  /// A worker's bytes reach a slot under this lease.
  void Written(std::uint64_t ring, const protocol::ShardLease& lease);

  /// No later lease of the shard was granted for this ring, and this one was not given up.
  bool IsNewest(std::uint64_t ring, const protocol::ShardLease& lease) const;

  /// The lease was granted by this scheduler, and neither it nor its task has ended since.
  bool Stands(const LeaseNumber& lease, const TaskId& task) const;
  protocol::Resources NeedOf(const TaskId& task) const;
  /// How often the task was leased since it last became open.
  unsigned GrantsOf(const TaskId& task) const;
  const ModelJob* Find(JobId job) const;
  bool AnyQuarantined(JobId job) const { return quarantined_.count(job) != 0; }
  std::uint64_t commits() const { return commits_; }

 private:
  using Rank = std::pair<std::int32_t, JobId>;
  /// Team, submitter, lane, CPUs, GPUs, memory.
  using Need =
      std::tuple<std::string, std::string, bool, std::uint32_t, std::uint32_t, std::uint64_t>;
  using RingShard = std::pair<std::uint64_t, ShardId>;
  using Place = std::pair<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t>;

  void OnRecord(const scheduler::StartRecord& record);
  void OnRecord(const scheduler::SubmitRecord& record);
  void OnRecord(const scheduler::CommitRecord& record);
  void OnRecord(const scheduler::FailRecord& record);
  void OnRecord(const scheduler::CancelRecord& record);
  void OnRecord(const scheduler::RetryRecord& record);
  void OnRecord(const scheduler::EndStreamRecord& record);
  void OnRecord(const scheduler::DetachRecord& record);
  void OnRecord(const scheduler::WorkerSeenRecord& record);
  void OnRecord(const scheduler::WorkerGoneRecord& record);
  void OnRecord(const scheduler::FinishUnitRecord& record);
  void OnRecord(const scheduler::UsageRecord&) {}
  void OnRecord(const scheduler::ChangeJobRecord&) {}
  void OnRecord(const scheduler::ForgetJobRecord&) {}
  void OnRecord(const scheduler::ChangeNodeRecord&) {}
  /// Again, since a job may have been moved that was not durable when the policy was emitted.
  void OnRecord(const scheduler::ApplyTeamsRecord& record) { Moved(record); }
  void NewLease(const LeaseNumber& lease, const Holder& holder);
  ModelTask* Open(const TaskId& id, const char* what);
  void CancelLost(ModelJob& job, std::size_t from);
  std::set<std::uint32_t> StartOver(ModelJob& job);
  void CheckInputs(const ModelJob& job, const ModelTask& task, const protocol::TaskLease& lease);
  void CheckOrder(const TaskId& id, const ModelTask& task);
  void NoteFresh(JobId id);
  void Moved(const scheduler::ApplyTeamsRecord& record);
  std::set<std::pair<Rank, std::uint32_t>>& FreshLike(const ModelJob& job, const ModelTask& task);
  void FinishIfEnded(ModelJob& job);
  void Say(const std::string& what) { violation_(what); }

  std::function<void(const std::string&)> violation_;
  std::map<JobId, ModelJob> jobs_;
  std::set<JobId> quarantined_;
  std::uint32_t incarnation_ = 0;
  std::uint64_t commits_ = 0;
  std::set<LeaseNumber> granted_, void_;
  std::map<scheduler::WorkerPlace, std::uint64_t> workers_;  ///< incarnations, from the journal
  std::set<std::uint64_t> workers_seen_;                     ///< also those that have ended
  std::map<std::uint64_t, std::vector<LeaseNumber>> held_by_, tasks_held_by_;
  /// Tasks that have been ready since this scheduler started and were never leased, by need and
  /// rank.
  std::map<Need, std::set<std::pair<Rank, std::uint32_t>>> fresh_;
  std::set<JobId> fresh_jobs_;
  std::vector<std::pair<LeaseNumber, protocol::TaskLease>> tasks_now_;
  std::vector<std::pair<LeaseNumber, std::pair<std::uint64_t, ShardId>>> shards_now_;
  std::map<RingShard, protocol::ShardLease> newest_;
  std::map<RingShard, LeaseNumber> fenced_;
  std::map<std::uint64_t, Place> last_place_;
  std::set<std::uint64_t> unordered_;
};

}  // namespace patchbay::sim
