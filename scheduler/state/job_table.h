// Jobs and tasks: the durable state of the scheduler. It changes only through Apply, so replaying
// the journal rebuilds it; members marked "not durable" belong to the running scheduler and are not
// part of the hash.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/solo_deaths.h"
#include "scheduler/state/records.h"

namespace patchbay::scheduler {

using protocol::JobState;
using protocol::TaskState;

/// kDone, kFailed, kCancelled or kQuarantined: nothing happens to the task any more unless its job
/// is retried.
bool IsEnded(TaskState state);
bool IsEnded(JobState state);
std::string_view NameOf(JobState state);

inline constexpr std::uint32_t kNoTask = UINT32_MAX;

/// Memory of the list of a stream's finished units.
std::uint64_t UnitBytes(std::uint64_t units);
/// Memory of a task before it has a result.
std::uint64_t TaskBytes(const protocol::TaskSpec& spec);

/// One unit of work. States and who moves them: scheduler/README.md.
struct Task {
  protocol::TaskSpec spec;  ///< payload and depends_on are dropped when it is done
  TaskState state = TaskState::kWaiting;
  std::string result;                    ///< kept until every consumer committed
  bool result_dropped = false;           ///< it had one, which is no longer needed
  std::uint32_t spawned_by = kNoTask;    ///< the task whose commit brought it
  bool superseded = false;               ///< its spawner runs again: it is kCancelled, uncounted
  std::uint32_t waiting_on = 0;          ///< dependencies that still hold it up
  std::uint32_t consumers_open = 0;      ///< dependents that may still need the result
  std::vector<std::uint32_t> consumers;  ///< in the order they were spawned
  std::uint32_t group_children = 0;      ///< tasks of its own group that it spawned
  /// Whether the task is after_failures or a successor of such a task: a retry may run it again.
  bool follows = false;

  // Not durable.
  std::uint64_t runnable_from = 0;  ///< the record that made it runnable; 0 = of before the start
  std::uint32_t queue_stamp = 0;    ///< the valid entry of the ready queue
  TimeMs retry_at = 0;              ///< not before
  std::uint8_t attempts = 0;        ///< outcomes that asked for a retry
  SoloDeaths solo_deaths;           ///< workers that died running it alone
  bool suspect = false;             ///< a worker died holding it among others: run it alone
  bool returned = false;            ///< from a lent core: a long one
  LeaseNumber lease;                ///< while kLeased

  /// Runs once every other task of the job has ended.
  bool IsSummary() const { return spec.after_failures && spec.depends_on.empty(); }
  /// A retry may run it again although it is done: it keeps payload and inputs.
  bool KeepsInputs() const { return follows || (group_children != 0 && spec.group != 0); }
};

/// Tasks that fail together, one slide's for example.
struct TaskGroup {
  bool failed = false;
  std::vector<std::uint32_t> members;
  std::uint32_t last_worker = UINT32_MAX;  ///< not durable: the WorkerId that was given one last
};

/// Units of a stream that are finished.
struct FinishedUnits {
  std::vector<bool> finished;               ///< by number, as far as any is
  std::uint64_t count = 0;                  ///< units that are
  std::map<std::uint64_t, Outcome> failed;  ///< texts of the first kMaxFailedListed

  bool Has(std::uint64_t unit) const { return unit < finished.size() && finished[unit]; }
};

/// One submission with its tasks, as the journal restores it.
struct Job {
  JobId id = 0;
  std::string submitter, submission_key, kind, name, manifest;
  std::string team;  ///< empty = the default team
  std::vector<std::string> read_prefixes, write_prefixes;
  std::int32_t priority = 0;
  bool on_hold = false;  ///< none of its tasks and shards is leased; until it ends
  std::uint32_t world_size = 1;
  std::int64_t submitted_at = 0, finished_at = 0;
  JobState state = JobState::kQueued;
  std::uint64_t finish_order = 0;  ///< rises with every job that ends; 0 = not ended
  std::deque<Task> tasks;
  std::uint64_t progress_bytes = 0;
  std::map<std::uint32_t, Outcome> failures;  ///< by task, the first kMaxFailedListed
  Outcome stream_outcome;                     ///< why a stream job ended
  std::set<std::uint32_t> detached;           ///< ranks that left a stream job
  FinishedUnits units;
  LeaseNumber void_leases;  ///< leases up to this one are of before
  struct {
    std::uint64_t sender = 0, request = 0, tasks = 0;  ///< the last request, tasks it reopened
  } last_retry;

  // Derived from the above.
  std::map<std::uint32_t, TaskGroup> groups;  ///< group 0 (the job) has no member list
  std::uint64_t tasks_done = 0, tasks_failed = 0, tasks_cancelled = 0, tasks_superseded = 0;
  std::uint64_t weight_total = 0, weight_done = 0;
  std::uint64_t size_bytes = 0;  ///< approximate memory of manifest, specs, results and failures
  std::vector<std::uint32_t> summaries;  ///< tasks that wait for all others
  std::uint64_t summaries_open = 0;

  // Not durable.
  std::uint64_t tasks_running = 0;
  std::uint64_t tasks_returned = 0;    ///< from lent cores since one of them ran
  bool waits_for_place = false;        ///< its team has as many streams as it may
  std::uint64_t ready_cpu_millis = 0;  ///< needs of the tasks that are kReady, planning apart
  AccountId account = kNoAccount;      ///< for shares; once it was asked for

  bool IsStream() const { return kind == "stream"; }
  /// Every unit of the stream is finished, and some may have failed: who comes late has nothing to
  /// do.
  bool EndedWhole() const {
    return units.count != 0 && (state == JobState::kDone || state == JobState::kPartlyFailed);
  }
  /// Whether the task runs in the planning lane of its worker, at the same time as other tasks: a
  /// stream's tasks only plan it. No GPU is promised to two lanes.
  bool Plans(const Task& task) const { return IsStream() && task.spec.resources.gpus == 0; }
  /// The one way in which a task becomes kReady, or is no longer.
  void SetState(Task& task, TaskState to) {
    const std::uint64_t need = Plans(task) ? 0 : task.spec.resources.cpu_millis;
    if (task.state == TaskState::kReady) ready_cpu_millis -= need;
    if (to == TaskState::kReady) ready_cpu_millis += need;
    task.state = to;
  }
  /// For a stream: the result of its last task is the plan.
  bool PlanIsReady() const { return tasks.back().state == TaskState::kDone; }
  std::uint64_t CountedTasks() const { return tasks.size() - tasks_superseded; }
  std::uint64_t OpenTasks() const {
    return CountedTasks() - tasks_done - tasks_failed - tasks_cancelled;
  }
  /// Nothing holds the task up any more (it may have ended).
  bool MayRun(const Task& task) const {
    return task.waiting_on == 0 && (!task.IsSummary() || OpenTasks() == summaries_open);
  }
};

/// The payer of the job's work.
Payer PayerOf(const Job& job);

/// The policy of teams that holds.
struct AppliedTeams {
  model::TeamPolicy policy;  ///< from `text`
  std::string text, source, by;
  std::int64_t at = 0;  ///< seconds since 1970; 0: none was applied

  /// Whether keys of that team may submit. Without a policy every key is of the default team.
  bool Has(const std::string& team) const { return policy.Find(team) != nullptr; }
};

/// A worker process that may hold leases, as far as the journal knows.
struct KnownWorker {
  std::uint64_t worker_incarnation = 0, agent_incarnation = 0;
  std::int64_t pid = 0;
  std::string host_identity;
};
using WorkerPlace = std::pair<std::string, std::uint32_t>;  ///< node, index

/// A node that an operator keeps from getting work.
struct DrainedNode {
  std::string by, reason;
};

/// The consequences of applying a record, for the scheduler to act on.
struct Effects {
  std::vector<TaskId> runnable;  ///< every dependency is done
  std::vector<TaskId> stopped;   ///< ended without an own outcome: take their leases back
  std::vector<JobId> ended;
  std::vector<JobId> forgotten;  ///< no longer in the table
  std::vector<JobId> planned;    ///< stream jobs whose plan was committed
  void Clear();
};

/// All jobs the scheduler knows. Single-threaded.
class JobTable {
 public:
  /// Changes the state by one fact and appends to `effects`. Internal (and nothing changed) when
  /// the record does not fit the state: a bug when live, a damaged journal in replay.
  Status Apply(Record&& record, Effects& effects);

  /// InvalidArgument or ResourceExhausted when `spec` may not join the job. `siblings_before` =
  /// tasks spawned before it by the same commit. `job` is null for a root task.
  static Status CheckSpec(const protocol::TaskSpec& spec, const Job* job,
                          std::uint32_t siblings_before);

  Job* Find(JobId id);
  const Job* Find(JobId id) const;
  Task* Find(const TaskId& id);
  /// 0 when there is none.
  JobId FindSubmission(const std::string& submitter, const std::string& submission_key) const;
  /// The newest stream job of that submitter and name that has not ended; null when there is none.
  const Job* FindOpenStream(const std::string& submitter, const std::string& name) const;

  const std::map<JobId, Job>& jobs() const { return jobs_; }
  std::map<JobId, Job>& mutable_jobs() { return jobs_; }
  JobId next_job() const { return next_job_; }
  /// Skips the numbers of jobs and incarnations that so many lost records may have used.
  void SkipLost(std::uint64_t records);
  std::uint32_t incarnation() const { return incarnation_; }
  const std::map<WorkerPlace, KnownWorker>& known_workers() const { return known_workers_; }
  const UsageLedger& usage() const { return usage_; }
  const std::map<std::string, DrainedNode>& drained_nodes() const { return drained_nodes_; }
  const std::map<std::string, std::string>& node_labels() const { return node_labels_; }
  const AppliedTeams& teams() const { return teams_; }
  std::size_t open_jobs() const { return jobs_.size() - finished_.size(); }
  /// Jobs of a team that have not ended, streams among them.
  std::uint32_t OpenJobsOf(const std::string& team) const;
  /// Memory of all open jobs: the sum of their size_bytes.
  std::uint64_t open_bytes() const { return total_bytes_ - finished_bytes_; }
  /// Checks these sums against the jobs. Slow: for tests and the simulator.
  Status CheckBytes() const;

  /// The durable state in canonical form: equal states give equal bytes.
  std::string Encode() const;
  /// Replaces the state. DataLoss when the bytes are damaged.
  Status Decode(std::string_view bytes);

 private:
  Status ApplyBody(StartRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(SubmitRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(CommitRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(FailRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(CancelRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(RetryRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(EndStreamRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(DetachRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(FinishUnitRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(UsageRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(ChangeJobRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(ForgetJobRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(ChangeNodeRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(WorkerSeenRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(WorkerGoneRecord&& r, std::int64_t at, Effects& effects);
  Status ApplyBody(ApplyTeamsRecord&& r, std::int64_t at, Effects& effects);
  Status TakePolicy(std::string&& text);

  void AddTask(Job& job, protocol::TaskSpec&& spec, std::uint32_t spawned_by);
  void AddSpawned(Job& job, std::uint32_t by, std::vector<protocol::TaskSpec>&& spawned,
                  Effects& effects);
  void EndTask(Job& job, std::uint32_t index, TaskState state, Effects& effects);
  void StopTask(Job& job, std::uint32_t index, Effects& effects);
  void StopGroup(Job& job, std::uint32_t group, Effects& effects);
  void Settle(Job& job, Effects& effects);
  void ReleaseInputs(Job& job, Task& task);
  static void Reopen(Task& task);
  void Supersede(Job& job, std::uint32_t index, Effects& effects);
  void FinishIfEnded(Job& job, std::int64_t at, Effects& effects);
  void Finish(Job& job, JobState state, std::int64_t at, Effects& effects);
  void ForgetOldest(Effects& effects);
  void Forget(const Job& job, Effects& effects);
  /// The job is open, or no longer.
  void CountOpened(const Job& job);
  void CountEnded(const Job& job);
  void Link(Job& job, std::uint32_t index);
  void DropResult(Job& job, Task& task);
  void Grow(Job& job, std::uint64_t bytes);
  void Shrink(Job& job, std::uint64_t bytes);
  Status DecodeJob(class WireReader& in, std::uint64_t version);
  void RebuildDerived(Job& job);
  void AddDerived(Job& job, std::uint32_t index);

  std::map<JobId, Job> jobs_;
  std::unordered_map<JobId, Job*> by_id_;
  Job* last_found_ = nullptr;  ///< most look-ups are of one job after another
  std::map<std::pair<std::string, std::string>, JobId> submissions_;
  std::set<std::pair<std::uint64_t, JobId>> finished_;  ///< (finish_order, job)
  std::uint64_t total_bytes_ = 0, finished_bytes_ = 0;
  std::unordered_map<std::string, std::uint32_t> open_of_;  ///< by team
  std::map<WorkerPlace, KnownWorker> known_workers_;
  UsageLedger usage_;
  std::map<std::string, DrainedNode> drained_nodes_;
  std::map<std::string, std::string> node_labels_;
  AppliedTeams teams_;
  std::vector<std::uint32_t> just_ended_;  ///< scratch of Settle
  JobId next_job_ = 1;
  std::uint64_t next_finish_ = 1;
  std::uint32_t incarnation_ = 0;
};

}  // namespace patchbay::scheduler
