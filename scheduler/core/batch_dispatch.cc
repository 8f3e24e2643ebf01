#include "scheduler/core/batch_dispatch.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "scheduler/core/charges.h"
#include "scheduler/core/job_access.h"
#include "scheduler/policy/back_off.h"
#include "scheduler/policy/limits.h"
#include "scheduler/policy/open_bytes.h"
#include "scheduler/state/lease_bytes.h"

namespace patchbay::scheduler {

using protocol::TasksCommitted;
using protocol::TasksFinished;

TasksCommitted BatchDispatch::Finish(Worker& worker, TasksFinished&& message) {
  Measure(worker, message);
  TasksCommitted committed;
  committed.leases.reserve(message.items.size());
  for (TasksFinished::Item& item : message.items) {
    committed.leases.push_back(item.lease);
    FinishItem(worker, std::move(item));
  }
  worker_table_.Reassign(worker);
  return committed;
}

/// Tasks of a lane run one after another, so the time since it was last seen working is theirs.
void BatchDispatch::Measure(Worker& worker, const TasksFinished& message) {
  FinishedTasks finished[2];
  const std::string* ops[2] = {};
  for (const TasksFinished::Item& item : message.items) {
    const Lease* lease = book_.Find(item.lease);
    if (lease == nullptr || lease->is_shard || lease->worker != worker.id) continue;
    const Task* task = table_.Find(item.task);
    if (task == nullptr) continue;
    const std::size_t lane = lease->planning ? 1 : 0;
    ++finished[lane].count;
    finished[lane].weight += task->spec.weight;
    finished[lane].cpu_us += charges_.Bounded(worker, lease, item.cost).cpu_us;
    ops[lane] = &task->spec.op;
  }
  for (const bool planning : {false, true}) {
    FinishedTasks& tasks = finished[planning ? 1 : 0];
    if (tasks.count == 0) continue;
    LaneLoad& lane = worker.LaneOf(planning);
    tasks.us = (event_.now - lane.busy_since) * 1000;
    pace_.Measure(*ops[planning ? 1 : 0], tasks);
    lane.busy_since = event_.now;
  }
}

void BatchDispatch::FinishItem(Worker& worker, TasksFinished::Item&& item) {
  const TaskId id = item.task;
  Task* task = table_.Find(id);
  const Lease* lease = book_.Find(item.lease);
  const bool held =
      lease != nullptr && !lease->is_shard && lease->worker == worker.id && lease->task == id;
  const bool from_before = item.lease.incarnation < table_.incarnation() && lease == nullptr &&
                           item.outcome.code == 0 && task != nullptr && !IsEnded(task->state) &&
                           item.lease > table_.Find(id.job)->void_leases &&
                           table_.Find(id.job)->MayRun(*task);
  // A lease of another worker does not count: its parts belong to it.
  const bool counts = held || from_before;
  const Status joined = counts && item.outcome.code == 0 ? JoinParts(item) : absl::OkStatus();
  if (counts) {
    if (lease == nullptr) charges_.Forget(worker.id, item.lease);
    item.cost = charges_.Bounded(worker, lease, item.cost);
    charges_.Share(id.job, item.cost, lease == nullptr ? 0 : lease->charged_us);
  } else if (lease == nullptr) {
    charges_.Report(worker, nullptr, item.lease, item.cost);
  }
  if (held) {
    worker.progress_at = event_.now;
    DropLease(item.lease, true);
    ++worker.tasks_done;
  } else if (!from_before) {
    ++counts_.stale;
    return;
  }
  if (!joined.ok()) {
    item.outcome = {static_cast<std::int32_t>(joined.code()), std::string(MessageOf(joined))};
  }
  if (item.outcome.code != 0 && !held) return;
  if (item.outcome.code != 0) charges_.Waste(id.job, item.cost);
  if (item.outcome.code != 0) return FailAttempt(id, std::move(item.outcome));
  if (const Status fits = CheckCommit(*table_.Find(id.job), item); !fits.ok()) {
    charges_.Waste(id.job, item.cost);
    return Fail(id, {static_cast<std::int32_t>(fits.code()), std::string(MessageOf(fits))}, false);
  }
  Commit(id, std::move(item));
}

Status BatchDispatch::CheckCommit(const Job& job, const TasksFinished::Item& item) const {
  if (item.result.size() > protocol::kMaxResultBytes) {
    return InvalidArgument("commit task: ", item.task.ToString(), ": the result is larger than ",
                           protocol::kMaxResultBytes, " bytes");
  }
  std::uint64_t bytes = item.result.size();
  for (const protocol::TaskSpec& spec : item.spawned) bytes += TaskBytes(spec);
  if (!CheckBytes("", bytes).ok()) {
    return CheckBytes(StrCat("commit task: ", item.task.ToString()), bytes);
  }
  for (std::size_t i = 0; i < item.spawned.size(); ++i) {
    PB_RETURN_IF_ERROR(JobTable::CheckSpec(item.spawned[i], &job, static_cast<std::uint32_t>(i)));
  }
  return absl::OkStatus();
}

Status BatchDispatch::CheckBytes(std::string_view doing, std::uint64_t bytes) const {
  return CheckOpenBytes(doing, table_.open_bytes() + book_.part_bytes(), bytes,
                        options_.open_bytes_max);
}

void BatchDispatch::Commit(const TaskId& id, TasksFinished::Item&& item) {
  Task& task = *table_.Find(id);
  if (task.lease != LeaseNumber{}) {
    Stop(id);
  }
  ++task.queue_stamp;
  delayed_.erase({task.retry_at, id});
  ++counts_.committed;
  const TaskGroup& group = table_.Find(id.job)->groups[task.spec.group];
  const bool is_last = item.spawned.empty() && task.spec.group != 0 && !group.failed &&
                       group.members.back() == id.index;
  counts_.groups_done += is_last ? 1 : 0;
  barrier_.Emit(CommitRecord{id, item.lease, std::move(item.result), item.progress_bytes,
                             std::move(item.spawned), item.cost});
}

/// Handles an attempt that ended with an error: schedules a retry after a back-off, or fails the
/// task.
void BatchDispatch::FailAttempt(const TaskId& id, Outcome&& outcome) {
  Task& task = *table_.Find(id);
  if (IsEnded(task.state)) return;
  if (!IsRetryable(outcome.code) || task.attempts + 1u >= kMaxTaskAttempts) {
    return Fail(id, std::move(outcome), false);
  }
  ++task.attempts;
  ++counts_.retried;
  logs_.Add(id.job, StrCat("task ", id.index, " attempt ", int{task.attempts}, " failed"), outcome);
  task.state = TaskState::kWaiting;
  task.retry_at = event_.now + BackOff(task.attempts, options_.retry_ms, options_.retry_max_ms);
  delayed_.insert({task.retry_at, id});
}

void BatchDispatch::Fail(const TaskId& id, Outcome&& outcome, bool quarantined) {
  Cut(outcome, kMaxOutcomeBytes);
  logs_.Add(id.job, StrCat("task ", id.index, quarantined ? " quarantined" : " failed"), outcome);
  Task& task = *table_.Find(id);
  ++task.queue_stamp;
  ++counts_.failed;
  const std::uint32_t group = task.spec.group;
  counts_.groups_failed += group != 0 && !table_.Find(id.job)->groups[group].failed ? 1 : 0;
  barrier_.Emit(FailRecord{id, std::move(outcome), quarantined});
}

void BatchDispatch::Enqueue(const TaskId& id) {
  Task* task = table_.Find(id);
  if (task == nullptr || task->state != TaskState::kWaiting) return;
  // The message may mean a former attempt: the task was cancelled and is retried meanwhile.
  if (task->retry_at > event_.now || barrier_.Holds(*task)) return;
  const Job& job = *table_.Find(id.job);
  if (job.on_hold || job.waits_for_place || !job.MayRun(*task)) return;
  PushReady(id, *task);
}

void BatchDispatch::PushReady(const TaskId& id, Task& task) {
  const ReadyTask entry{id, ++task.queue_stamp, task.spec.group};
  Job& job = *table_.Find(id.job);
  task.lease = {};
  job.SetState(task, TaskState::kReady);
  ReadyQueue& queue = job.Plans(task) ? planning_ : ready_;
  if (task.suspect) {
    solo_.push_back(entry);
  } else if (!queue.Push({job.priority, job.id}, AccountOf(fair_, job), task.spec.resources,
                         entry) &&
             told_to_wait_.insert(job.id).second) {
    logs_.Add(job.id, StrCat("tasks wait: others of key ", job.submitter, " are ready with ",
                             kMaxResourceShapes, " different needs of CPUs, GPUs and memory, as ",
                             "many as one key may have: let them run, or cancel their jobs"));
  }
  look_at_all_ = look_at_all_ || task.suspect;
}

void BatchDispatch::Forget(const Job& job) {
  for (ReadyQueue* queue : {&ready_, &planning_}) {
    queue->Drop({job.priority, job.id}, job.account);
  }
  told_to_wait_.erase(job.id);
}

void BatchDispatch::TakeOut(Job& job) {
  Forget(job);
  for (Task& task : job.tasks) {
    if (task.state == TaskState::kReady) job.SetState(task, TaskState::kWaiting);
  }
}

void BatchDispatch::PutBack(const Job& job) {
  for (std::uint32_t i = 0; i < job.tasks.size(); ++i) Enqueue({job.id, i});
  if (!job.on_hold) return;
  for (Worker& worker : worker_table_.workers()) TakeBackUnstarted(worker, job.id);
}

void BatchDispatch::TakeBackUnstarted(Worker& worker, JobId job) {
  if (worker.tasks.size() < 2) return;
  bool runs[2] = {true, true};  // by lane: its first lease
  const LeaseSet held = worker.tasks;
  for (const LeaseNumber& number : held) {
    const Lease& lease = book_.At(number);
    const bool first = std::exchange(runs[lease.planning ? 1 : 0], false);
    if (!first && (job == 0 || lease.task.job == job)) TakeBack(number);
  }
  worker_table_.Reassign(worker);
}

BatchDispatch::Waiting BatchDispatch::WaitingOf(const Job& job) const {
  Waiting waits;
  for (const bool planning : {false, true}) {
    const ReadyQueue& queue = planning ? planning_ : ready_;
    const Resources* const need = queue.NeedOf({job.priority, job.id}, job.account);
    if (need == nullptr) continue;
    waits.need = *need;
    waits.planning = planning;
    return waits;
  }
  for (const ReadyTask& entry : solo_) {
    if (entry.task.job != job.id || !Valid(entry)) continue;
    const Task& task = job.tasks[entry.task.index];
    waits.suspect = task.spec.resources;
    waits.planning = job.Plans(task);
    return waits;
  }
  const auto delayed = std::find_if(delayed_.begin(), delayed_.end(),
                                    [&](const auto& one) { return one.second.job == job.id; });
  if (delayed != delayed_.end()) waits.retry_at = delayed->first;
  return waits;
}

bool BatchDispatch::Valid(const ReadyTask& entry) const {
  const Task* task = table_.Find(entry.task);
  return task != nullptr && task->state == TaskState::kReady && task->queue_stamp == entry.stamp;
}

void BatchDispatch::Dispatch() {
  if (!solo_.empty() && (look_at_all_ || worker_table_.AnyFreed())) DispatchSolo();
  const std::vector<WorkerId>& freed = worker_table_.TakeFreed();
  DispatchLane(true, freed);
  DispatchLane(false, freed);
  look_at_all_ = false;
}

bool BatchDispatch::IsOpen(const Worker& worker, bool planning) const {
  return planning ? worker_table_.IsOpenForPlanning(worker.id)
                  : worker_table_.IsOpenForTasks(worker.id);
}

bool BatchDispatch::HasRoom(Worker& worker, const Resources& need, bool planning) {
  if (!Fits(need, worker.capacity)) return false;
  return planning ? worker_table_.HasRoomToPlan(worker, need)
                  : worker_table_.NodeHasRoom(worker, need);
}

bool BatchDispatch::MayHold(Worker& worker, AccountId account, const Resources& need,
                            bool planning) {
  return (planning || worker.holders.Admits(account, need, fair_)) &&
         HasRoom(worker, need, planning);
}

/// With `instead`, only of what that lease holds beyond its team's guarantee and the account's
/// lacks.
ReadyQueue::Lane* BatchDispatch::BestOf(Worker& worker, AccountId account, const Lease* instead) {
  const auto fits = [&](AccountId one, const Resources& need) {
    return MayHold(worker, one, need, false) &&
           (instead == nullptr ||
            fair_.HoldsOf(
                instead->account, one,
                Both(AmountsOf(need), AmountsOf(table_.Find(instead->task)->spec.resources))));
  };
  while (ReadyQueue::Lane* lane = ready_.BestOf(account, fits)) {
    if (Valid(ReadyQueue::Head(*lane).tasks.front())) return lane;
    ready_.Pop(*lane);
  }
  return nullptr;
}

bool BatchDispatch::IsWanted(Worker& worker, AccountId account) {
  if (ready_.empty() || !worker_table_.MayTakeMore(worker.id)) return false;
  const TimeMs busy_ms = event_.now - worker.work.busy_since;
  // No task starts behind one that runs for long, whatever else the worker makes.
  if (worker.work.tasks != 0 && busy_ms >= kLongRunMs) return false;
  std::vector<AccountId> behind;  // looking at their tasks may change the order
  std::size_t looked_at = 0;
  fair_.AnyInOrder([&](AccountId one) {
    if (one == account || !fair_.IsBefore(one, account)) return true;
    if (fair_.IsBehind(one, account)) behind.push_back(one);
    return ++looked_at == kMostLookedAt;
  });
  // Streams go before batch jobs of the same user, and neither starves the other.
  const bool overdue = busy_ms >= kOwnTaskMs;
  if (worker.work.tasks == 0 && overdue && fair_.TasksAreBehind(account)) behind.push_back(account);
  return std::any_of(behind.begin(), behind.end(), [&](AccountId one) {
    const ReadyQueue::Lane* lane = BestOf(worker, one);
    if (lane == nullptr) return false;
    const Task& task = *table_.Find(ReadyQueue::Head(*lane).tasks.front().task);
    return MayStart(worker, one, task, pace_.Of(task.spec.op, task.spec.weight).us);
  });
}

bool BatchDispatch::MayStart(const Worker& worker, AccountId account, const Task& task,
                             std::int64_t estimate_us) const {
  return fair_.MayStart(account, task.returned ? kUnendingUs : estimate_us,
                        worker.holders.MoreForTasks(account, task.spec.resources));
}

/// A task of a group that the worker or its node has worked on, when one is near the head.
std::size_t BatchDispatch::ChooseTask(const ReadyQueue::JobTasks& tasks, const Worker& worker) {
  if (tasks.tasks.front().group == 0) return 0;
  std::array<Affinity, kAffinityHead> head;
  const std::size_t count = std::min(head.size(), tasks.tasks.size());
  for (std::size_t i = 0; i < count; ++i) {
    head[i] = AffinityOf(tasks.tasks[i], worker);
    if (head[i] == Affinity::kWorker && tasks.times_skipped < kMaxSkips) return i;
  }
  return ChooseByAffinity(std::span(head).first(count), tasks.times_skipped);
}

Affinity BatchDispatch::AffinityOf(const ReadyTask& entry, const Worker& worker) {
  const Job* job = table_.Find(entry.task.job);
  if (job == nullptr || entry.group == 0) return Affinity::kNowhere;
  const auto group = job->groups.find(entry.group);
  const WorkerId last = group == job->groups.end() ? kNoWorker : group->second.last_worker;
  if (last == kNoWorker || last >= worker_table_.workers().size()) return Affinity::kNowhere;
  if (last == worker.id) return Affinity::kWorker;
  return worker_table_.at(last).node == worker.node ? Affinity::kNode : Affinity::kElsewhere;
}

void BatchDispatch::LeaseTask(Worker& worker, const ReadyTask& entry,
                              const TaskPace::Estimate& estimate) {
  const Lease& lease = Begin(worker, book_.NextNumber(), entry.task, estimate);
  const Job& job = *table_.Find(entry.task.job);
  book_.Grant(worker.id, Describe(lease), LeaseBytes(job, job.tasks[entry.task.index]));
}

/// The worker has the task under that number from now on.
const Lease& BatchDispatch::Begin(Worker& worker, const LeaseNumber& number, const TaskId& id,
                                  const TaskPace::Estimate& estimate) {
  Job& job = *table_.Find(id.job);
  Task& task = job.tasks[id.index];
  Lease lease;
  lease.number = number;
  lease.worker = worker.id;
  lease.worker_incarnation = worker.incarnation;
  lease.granted_at = event_.now;
  lease.deadline = event_.now + options_.lease_ms;
  lease.task = id;
  lease.planning = job.Plans(task);
  lease.queued_us = estimate.us;
  job.SetState(task, TaskState::kLeased);
  task.lease = number;
  if (job.state == JobState::kQueued) job.state = JobState::kRunning;
  ++job.tasks_running;
  if (task.spec.group != 0) job.groups[task.spec.group].last_worker = worker.id;
  worker.next_expiry = worker.tasks.empty() && worker.shards.empty()
                           ? lease.deadline
                           : std::min(worker.next_expiry, lease.deadline);
  worker_table_.LookBy(worker.id, worker.next_expiry);
  worker.tasks.insert(number);
  if (task.suspect) worker.suspect = number;
  if (task.returned) job.tasks_returned = 0;
  LaneLoad& lane = worker.LaneOf(lease.planning);
  if (lane.tasks++ == 0) lane.busy_since = event_.now;
  lane.occupancy.Add(task.spec.resources);
  lane.queued_us += lease.queued_us;
  if (!lease.planning) {  // planning is free
    lease.account = AccountOf(fair_, job);
    lease.estimate_us = std::min(estimate.cpu_us, kMostEstimateUs);
    fair_.Grant(lease.account, lease.estimate_us);
    worker.holders.Add(lease.account, task.spec.resources, false, fair_);
  }
  worker_table_.Reassign(worker);
  return book_.Add(std::move(lease));
}

protocol::TaskLease BatchDispatch::Describe(const Lease& lease) const {
  const Job& job = *table_.Find(lease.task.job);
  const Task& task = job.tasks[lease.task.index];
  protocol::TaskLease granted;
  granted.lease = lease.number;
  granted.task = lease.task;
  granted.op = task.spec.op;
  granted.payload = task.spec.payload;
  if (InputBytes(job, task) > kMaxLeaseInputBytes) granted.inputs_apart = task.spec.depends_on;
  for (const std::uint32_t on : task.spec.depends_on) {
    if (!granted.inputs_apart.empty()) break;
    const bool done = job.tasks[on].state == TaskState::kDone;
    granted.inputs.push_back(done ? job.tasks[on].result : std::string());
  }
  granted.manifest = job.manifest;
  granted.submitter = job.submitter;
  granted.read_prefixes = job.read_prefixes;
  granted.write_prefixes = job.write_prefixes;
  granted.planning = lease.planning;
  return granted;
}

void BatchDispatch::DropLease(const LeaseNumber& number, bool cost_is_known) {
  const Lease* found = book_.Find(number);
  if (found == nullptr) return;
  const Lease& lease = *found;
  Job* job = table_.Find(lease.task.job);
  Task& task = job->tasks[lease.task.index];
  task.lease = {};
  if (task.state == TaskState::kLeased) task.state = TaskState::kWaiting;
  --job->tasks_running;
  Worker& worker = worker_table_.at(lease.worker);
  if (!cost_is_known) charges_.End(lease, worker, false);
  worker.tasks.erase(lease.number);
  if (worker.suspect == lease.number) worker.suspect = {};
  LaneLoad& lane = worker.LaneOf(lease.planning);
  --lane.tasks;
  lane.occupancy.Remove(task.spec.resources);
  lane.queued_us -= lease.queued_us;
  if (lease.account != kNoAccount) {
    fair_.Refund(lease.account, lease.estimate_us);
    worker.holders.Remove(lease.account, false, fair_);
  }
  book_.Erase(lease);
}

/// Suspects run alone: on an idle worker, or on one that is reserved until it is idle. A suspect
/// that no present worker could run is moved behind the others.
void BatchDispatch::DispatchSolo() {
  const auto sooner = [](const Worker& a, const Worker& b) {
    return std::tuple(a.IsPlanning(), !a.reserved, a.tasks.size()) <
           std::tuple(b.IsPlanning(), !b.reserved, b.tasks.size());
  };
  std::size_t unmet = 0;
  for (std::size_t left = solo_.size(); left != 0 && unmet < kMaxSoloUnmet; --left) {
    const ReadyTask entry = solo_.front();
    solo_.pop_front();
    if (!Valid(entry)) continue;
    const Task& task = *table_.Find(entry.task);
    const Resources need = task.spec.resources;
    const bool planning = table_.Find(entry.task.job)->Plans(task);
    Worker* chosen = nullptr;
    Worker* next = nullptr;
    for (Worker& worker : worker_table_.workers()) {
      if (!worker_table_.CanLease(worker) || worker.RunsSuspect() || !Fits(need, worker.capacity))
        continue;
      const bool idle = worker.tasks.empty() && worker.shards.empty();
      const bool room = planning ? worker_table_.HasRoomToPlan(worker, need)
                                 : worker_table_.NodeHasRoom(worker, need);
      if (idle && room) {
        chosen = &worker;
        break;
      }
      if (next == nullptr || sooner(worker, *next)) next = &worker;
    }
    if (chosen == nullptr && next == nullptr) {
      solo_.push_back(entry);
      ++unmet;
      continue;
    }
    if (chosen == nullptr) {
      solo_.push_front(entry);
      worker_table_.Reserve(*next, planning ? Resources{0, 0, 0} : need,
                            WorkerTable::SuspectPlace::kEmptyWorker);
      return;
    }
    worker_table_.Unreserve(*chosen);
    LeaseTask(*chosen, entry, pace_.Of(task.spec.op, task.spec.weight));
  }
}

void BatchDispatch::Stop(const TaskId& id) {
  const Lease* lease = book_.Find(table_.Find(id)->lease);
  if (lease == nullptr) return;
  Worker& worker = worker_table_.at(lease->worker);
  book_.Revoke(*lease);
  DropLease(lease->number);
  worker_table_.Reassign(worker);
}

void BatchDispatch::TakeBack(const LeaseNumber& number) {
  const TaskId task = book_.At(number).task;
  book_.Revoke(book_.At(number));
  DropLease(number);
  Enqueue(task);
}

void BatchDispatch::Tick() {
  while (!delayed_.empty() && delayed_.begin()->first <= event_.now) {
    const TaskId id = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    Enqueue(id);
  }
  FollowRunning();
  if (!ready_.empty() || fair_.AnyStalls()) HandBack();
  look_at_all_ = look_at_all_ || !ready_.empty() || !planning_.empty() || !solo_.empty();
}

void BatchDispatch::Adopt(Worker& worker, const protocol::HeldLease& held) {
  Task* task = table_.Find(held.task);
  if (task == nullptr || IsEnded(task->state) || task->lease != LeaseNumber{}) return;
  Job& job = *table_.Find(held.task.job);
  if (held.lease <= job.void_leases || job.waits_for_place) return;
  const bool planning = job.Plans(*task);
  if (!job.MayRun(*task) || worker.LaneOf(planning).tasks >= kMaxQueueDepth) return;
  if (worker.RunsSuspect() || task->suspect) return;  // a suspect runs alone
  const Resources need = task->spec.resources;
  if (!Fits(need, worker.capacity)) return;
  if (planning ? !worker_table_.HasRoomToPlan(worker, need)
               : !worker_table_.NodeHasRoom(worker, need)) {
    return;
  }
  charges_.Forget(worker.id, held.lease);
  Begin(worker, held.lease, held.task, pace_.Of(task->spec.op, task->spec.weight));
}

void BatchDispatch::Blame(const TaskId& id, bool alone, WorkerEnd end) {
  Task& task = *table_.Find(id);
  if (IsEnded(task.state)) return;
  task.suspect = true;
  if (!alone) return;
  task.solo_deaths.Add(end);
  logs_.Add(id.job, StrCat("task ", id.index, ": its worker ",
                           end == WorkerEnd::kKilled ? "was killed" : "died", ", ",
                           task.solo_deaths.total(), " so far"));
  if (!task.solo_deaths.TooMany()) return;
  Fail(id,
       OutcomeOf(
           Internal("run task: ", id.ToString(), ": ended ", task.solo_deaths.total(), " workers")),
       true);
}

}  // namespace patchbay::scheduler
