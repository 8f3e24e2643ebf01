// Batch dispatch: tasks from ready to leased to done, failed or tried again, in two lanes: planning
// and all else. Private to scheduler/core.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/policy/affinity.h"
#include "scheduler/policy/pace.h"
#include "scheduler/policy/ready_queue.h"
#include "scheduler/policy/solo_deaths.h"
#include "scheduler/state/job_logs.h"

namespace patchbay::scheduler {

class Charges;

/// Owns the queues of ready tasks and of tasks that wait for their next attempt.
///
/// Invariants: a ready task is in one queue under its newest stamp; a task that waits for a time is
/// in the list of delayed tasks under that time; a leased task's lease is in the book, and the
/// record that made it runnable is on disk; a worker's leases fit it and its node; a suspect is
/// leased alone; a job's running tasks are its leased ones; no task waits to plan while a worker
/// with room for it plans nothing, whatever else it holds. Planning is outside all shares.
class BatchDispatch {
 public:
  struct Counts {
    std::uint64_t committed = 0, failed = 0, retried = 0, returned = 0, stale = 0;
    std::uint64_t groups_done = 0, groups_failed = 0;  ///< a group is a slide or volume of a job
  };

  /// The next of a job's tasks that no worker has.
  struct Waiting {
    std::optional<Resources> need;     ///< the need of one that is queued
    std::optional<Resources> suspect;  ///< else: the need of one that is to run alone
    bool planning = false;             ///< either would run in the planning lane
    TimeMs retry_at = 0;               ///< else: time of a next attempt; 0 = none
  };

  BatchDispatch(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
                JobLogs& logs, FairShare& fair, WorkerTable& worker_table, LeaseBook& book,
                Charges& charges)
      : event_(event),
        options_(options),
        barrier_(barrier),
        table_(barrier.table()),
        logs_(logs),
        fair_(fair),
        worker_table_(worker_table),
        book_(book),
        charges_(charges),
        ready_(fair),
        planning_(fair) {}

  /// The worker says what the task has taken so far: 0 unless it runs.
  void Renew(Worker& worker, Lease& lease, std::int64_t cpu_us);
  /// Takes a worker's report on its tasks; the caller sends the answer.
  protocol::TasksCommitted Finish(Worker& worker, protocol::TasksFinished&& message);
  void KeepPart(const Request& request, Worker& worker, protocol::PutResultPart&& message);
  /// A piece of a result that a task held by the worker depends on; that lease lives on.
  void GiveInput(const Request& request, Worker& worker, const protocol::FetchResult& message);

  /// Queues a task that is ready, unless it is queued already, has ended, or its job is on hold or
  /// waits for a place.
  void Enqueue(const TaskId& id);
  /// Takes the task's lease back, if it has one, because the task ended without an outcome of its
  /// own.
  void Stop(const TaskId& id);
  /// Removes a lease that has ended in any way. The caller decides about the task, and charges a
  /// cost that is known.
  void DropLease(const LeaseNumber& number, bool cost_is_known = false);
  /// The job has ended: removes its queued tasks, for which no worker may ever have had room.
  void Forget(const Job& job);
  /// The job's priority, hold or account is about to change: takes its tasks out of the queues.
  void TakeOut(Job& job);
  /// It has changed: queues its tasks again; on hold, takes back those that no worker runs yet.
  void PutBack(const Job& job);
  /// Takes back the tasks behind the one that each lane of the worker runs; `job`: only tasks of
  /// that job, 0 = of all.
  void TakeBackUnstarted(Worker& worker, JobId job);
  /// The worker lost the lease on the way: its task joins the queue again.
  void TakeBack(const LeaseNumber& number);
  /// A worker died holding the task's lease; `alone`: and nothing else.
  void Blame(const TaskId& id, bool alone, WorkerEnd end);
  /// Adopts a task leased by a former incarnation under its old number, if allowed.
  void Adopt(Worker& worker, const protocol::HeldLease& held);

  /// Workers came, or may be given more: dispatch looks at all of them.
  void LookAgain() { look_at_all_ = true; }
  /// Gives ready tasks to workers that have room.
  void Dispatch();
  void Tick();

  Waiting WaitingOf(const Job& job) const;
  /// Whether the worker and its node have room for a task of that need in this lane.
  bool HasRoom(Worker& worker, const Resources& need, bool planning);
  /// Whether an account that is behind that one has a task for which the worker has room once it
  /// makes no shards and runs no other; or that one itself, where no task ran for a second and its
  /// tasks use no more than its shards.
  bool IsWanted(Worker& worker, AccountId account);
  std::uint64_t ready() const { return ready_.size(); }
  std::uint64_t queued() const { return ready_.size() + planning_.size() + solo_.size(); }
  const Counts& counts() const { return counts_; }
  Status Check() const;

 private:
  /// Puts the parts received before in front of the item's result. Unavailable when the item does
  /// not continue them.
  Status JoinParts(protocol::TasksFinished::Item& item);
  void Measure(Worker& worker, const protocol::TasksFinished& message);
  void FinishItem(Worker& worker, protocol::TasksFinished::Item&& item);
  void Commit(const TaskId& id, protocol::TasksFinished::Item&& item);
  Status CheckCommit(const Job& job, const protocol::TasksFinished::Item& item) const;
  /// ResourceExhausted unless open jobs may hold `bytes` more.
  Status CheckBytes(std::string_view doing, std::uint64_t bytes) const;
  void FailAttempt(const TaskId& id, Outcome&& outcome);
  void Fail(const TaskId& id, Outcome&& outcome, bool quarantined);
  void PushReady(const TaskId& id, Task& task);
  void DispatchSolo();
  /// Takes a task back from a lent core whose owner has had to wait for it.
  void HandBack();
  void HandBack(const Lease& lent);
  const Lease* LeaseForTasks(const std::vector<const Lease*>& running,
                             const std::vector<AccountId>& owed);
  const Lease* LeaseForShards(const std::vector<const Lease*>& running);
  /// Charges tasks that have run for a while, until the next tick.
  void FollowRunning();
  void FreeThoseBehind(Lease& lease);
  const Lease* RunningOn(const Worker& worker) const;
  /// Gives tasks of one lane to the workers that are open for it.
  void DispatchLane(bool planning, const std::vector<WorkerId>& freed);
  /// The same of those accounts to any worker; null: of all accounts.
  void LookAtOpen(bool planning, std::vector<AccountId>* only);
  bool IsOpen(const Worker& worker, bool planning) const;
  /// The account's lane of the best task for which the worker has room, stale entries removed; null
  /// when there is none.
  ReadyQueue::Lane* BestOf(Worker& worker, AccountId account, const Lease* instead = nullptr);
  /// Whether there is room, and within the caps of the account.
  bool MayHold(Worker& worker, AccountId account, const Resources& need, bool planning);
  bool GrantNext(Worker& worker, bool planning, const std::vector<AccountId>* only = nullptr);
  /// Whether the task may start there as far as lending goes.
  bool MayStart(const Worker& worker, AccountId account, const Task& task,
                std::int64_t estimate_us) const;
  Status CheckPlanning() const;
  std::size_t ChooseTask(const ReadyQueue::JobTasks& tasks, const Worker& worker);
  Affinity AffinityOf(const ReadyTask& entry, const Worker& worker);
  void LeaseTask(Worker& worker, const ReadyTask& entry, const TaskPace::Estimate& estimate);
  const Lease& Begin(Worker& worker, const LeaseNumber& number, const TaskId& id,
                     const TaskPace::Estimate& estimate);
  bool Valid(const ReadyTask& entry) const;
  protocol::TaskLease Describe(const Lease& lease) const;

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  JobTable& table_;
  JobLogs& logs_;
  FairShare& fair_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  Charges& charges_;
  ReadyQueue ready_, planning_;  ///< all but planning; planning
  std::deque<ReadyTask> solo_;
  std::set<std::pair<TimeMs, TaskId>> delayed_;  ///< waiting for their next attempt
  std::set<LeaseNumber> running_;  ///< tasks charged as they run, and some that have ended
  std::set<JobId> told_to_wait_;   ///< jobs whose log already tells that tasks wait aside
  bool look_at_all_ = false;
  TimeMs oldest_running_ = 0;                  ///< no task that workers run began before
  OpenWorkers::value_type looked_to_[2] = {};  ///< where the look at all goes on, by lane
  TaskPace pace_;
  Counts counts_;
};

}  // namespace patchbay::scheduler
