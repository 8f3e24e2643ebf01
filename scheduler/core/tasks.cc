// Batch tasks: from ready to leased to done, failed or tried again.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "scheduler/core/machine.h"
#include "scheduler/policy/retry.h"

namespace patchbay::scheduler {

using protocol::Outcome;
using protocol::TasksFinished;

namespace {

/// What the lease of this task takes in a message, generously.
std::size_t LeaseBytes(const Job& job, const Task& task) {
  std::size_t bytes = 256 + task.spec.payload.size() + job.manifest.size();
  for (const std::uint32_t on : task.spec.depends_on) bytes += 16 + job.tasks[on].result.size();
  return bytes;
}

}  // namespace

void Core::Machine::On(const Request& request, TasksFinished&& message) {
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  MeasureTasks(*worker, message);
  protocol::TasksCommitted committed;
  committed.leases.reserve(message.items.size());
  for (TasksFinished::Item& item : message.items) {
    committed.leases.push_back(item.lease);
    FinishItem(*worker, std::move(item));
  }
  Reassign(*worker);
  FinishDrains(*worker);
  Answer(request, std::move(committed));
}

void Core::Machine::On(const Request& request, protocol::PutResultPart&& message) {
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  const auto it = leases.find(message.lease);
  if (it == leases.end() || it->second.is_shard || it->second.worker != worker->id) {
    return Refuse(request, absl::NotFoundError("put result part: the lease is not held"));
  }
  std::string& kept = it->second.result_parts;
  worker->progress_at = now;
  it->second.deadline = now + options.lease_ms;
  // Said twice, it is kept once.
  const bool repeated = message.offset < kept.size();
  if (message.offset > kept.size()) {
    return Refuse(request, absl::FailedPreconditionError("put result part: one is missing"));
  }
  if (message.bytes.size() > protocol::kMaxInlineResultBytes ||
      kept.size() + message.bytes.size() > protocol::kMaxResultBytes) {
    return Refuse(request, absl::InvalidArgumentError("put result part: the result is too large"));
  }
  if (!repeated) kept += message.bytes;
  Answer(request, protocol::ResultPartKept{kept.size()});
}

Status Core::Machine::JoinParts(TasksFinished::Item& item) {
  if (item.result_offset == 0) return absl::OkStatus();
  const auto it = leases.find(item.lease);
  if (it == leases.end() || it->second.result_parts.size() != item.result_offset) {
    return absl::UnavailableError(
        StrCat("commit task: ", item.task.ToString(), ": the first parts of its result are lost"));
  }
  std::string whole = std::move(it->second.result_parts);
  whole += item.result;
  item.result = std::move(whole);
  item.result_offset = 0;
  return absl::OkStatus();
}

/// Tasks run one after another, so the time since the queue was last seen working is theirs.
void Core::Machine::MeasureTasks(Worker& worker, const TasksFinished& message) {
  std::uint32_t count = 0;
  std::uint64_t weight = 0;
  const std::string* op = nullptr;
  for (const TasksFinished::Item& item : message.items) {
    if (worker.tasks.count(item.lease) == 0) continue;
    const Task* task = table.Find(item.task);
    if (task == nullptr) continue;
    ++count;
    weight += task->spec.weight;
    op = &task->spec.op;
  }
  if (count != 0) task_pace.Measure(*op, (now - worker.busy_since) * 1000, count, weight);
  worker.busy_since = now;
}

void Core::Machine::FinishItem(Worker& worker, TasksFinished::Item&& item) {
  const TaskId id = item.task;
  Task* task = table.Find(id);
  const auto lease = leases.find(item.lease);
  const bool held = lease != leases.end() && !lease->second.is_shard &&
                    lease->second.worker == worker.id && lease->second.task == id;
  const bool from_before = item.lease.incarnation < table.incarnation() && lease == leases.end() &&
                           item.outcome.code == 0 && task != nullptr && !IsEnded(task->state) &&
                           item.lease > table.Find(id.job)->void_leases &&
                           table.Find(id.job)->MayRun(*task);
  // Not for a lease of another: its parts are its own.
  const bool counts = held || from_before;
  const Status joined = counts && item.outcome.code == 0 ? JoinParts(item) : absl::OkStatus();
  if (held) {
    worker.progress_at = now;
    DropTaskLease(item.lease);
    ++worker.tasks_done;
  } else if (!from_before) {
    ++counters.stale_reports;
    return;
  }
  if (!joined.ok()) {
    item.outcome = {static_cast<std::int32_t>(joined.code()), std::string(MessageOf(joined))};
  }
  if (item.outcome.code != 0 && !held) return;
  if (item.outcome.code != 0) return FailAttempt(id, std::move(item.outcome));
  if (const Status fits = CheckCommit(*table.Find(id.job), item); !fits.ok()) {
    return FailTask(id, {static_cast<std::int32_t>(fits.code()), std::string(MessageOf(fits))},
                    false);
  }
  CommitTask(id, std::move(item));
}

Status Core::Machine::CheckCommit(const Job& job, const TasksFinished::Item& item) const {
  if (item.result.size() > protocol::kMaxResultBytes) {
    return absl::InvalidArgumentError(StrCat("commit task: ", item.task.ToString(),
                                             ": the result is larger than ",
                                             protocol::kMaxResultBytes, " bytes"));
  }
  if (job.size_bytes + item.result.size() > kMaxJobBytes) {
    return absl::FailedPreconditionError(
        StrCat("commit task: ", item.task.ToString(), ": the job keeps too many bytes"));
  }
  for (std::size_t i = 0; i < item.spawned.size(); ++i) {
    PB_RETURN_IF_ERROR(JobTable::CheckSpec(item.spawned[i], &job, static_cast<std::uint32_t>(i)));
  }
  return absl::OkStatus();
}

void Core::Machine::CommitTask(const TaskId& id, TasksFinished::Item&& item) {
  Task& task = *table.Find(id);
  if (task.lease != LeaseNumber{}) {
    Worker& holder = workers[leases.at(task.lease).worker];
    Revoke(leases.at(task.lease));
    DropTaskLease(task.lease);
    Reassign(holder);
  }
  ++task.queue_stamp;
  delayed.erase({task.retry_at, id});
  ++counters.tasks_committed;
  Emit(CommitRecord{id, item.lease, std::move(item.result), item.progress_bytes,
                    std::move(item.spawned)});
  const Job* job = table.Find(id.job);
  if (id.index == 0 && job != nullptr && job->IsStream()) OpenStream(id.job).IgnoreError();
}

/// One attempt ended with an error: back off and try again, or give up.
void Core::Machine::FailAttempt(const TaskId& id, Outcome&& outcome) {
  Task& task = *table.Find(id);
  if (IsEnded(task.state)) return;
  if (!IsRetryable(outcome.code) || task.attempts + 1u >= kMaxTaskAttempts) {
    return FailTask(id, std::move(outcome), false);
  }
  ++task.attempts;
  LogLine(id.job,
          StrCat("task ", id.index, " attempt ", int{task.attempts}, " failed: ", outcome.message));
  task.state = TaskState::kWaiting;
  task.retry_at = now + BackOff(task.attempts, options.retry_ms, options.retry_max_ms);
  delayed.insert({task.retry_at, id});
}

void Core::Machine::FailTask(const TaskId& id, Outcome&& outcome, bool quarantined) {
  if (outcome.message.size() > kMaxOutcomeBytes) outcome.message.resize(kMaxOutcomeBytes);
  LogLine(id.job,
          StrCat("task ", id.index, quarantined ? " quarantined: " : " failed: ", outcome.message));
  ++table.Find(id)->queue_stamp;
  Emit(FailRecord{id, std::move(outcome), quarantined});
}

/// A task that nothing holds up any more joins the queue, unless it is there or ended meanwhile.
void Core::Machine::Enqueue(const TaskId& id) {
  Task* task = table.Find(id);
  if (task == nullptr || task->state != TaskState::kWaiting) return;
  if (task->retry_at > now) return;
  if (!table.Find(id.job)->MayRun(*task)) return;
  PushReady(id, *task);
}

void Core::Machine::PushReady(const TaskId& id, Task& task) {
  const ReadyTask entry{id, ++task.queue_stamp, task.spec.group};
  task.lease = {};
  if (task.suspect) {
    task.state = TaskState::kReady;
    solo_ready.push_back(entry);
  } else if (ready.Push({table.Find(id.job)->priority, id.job}, task.spec.resources, entry)) {
    task.state = TaskState::kReady;
  } else {
    task.state = TaskState::kWaiting;
    task.retry_at = now + options.retry_ms;
    delayed.insert({task.retry_at, id});
  }
  pushed_ready = true;
}

bool Core::Machine::Valid(const ReadyTask& entry) {
  const Task* task = table.Find(entry.task);
  return task != nullptr && task->state == TaskState::kReady && task->queue_stamp == entry.stamp;
}

void Core::Machine::DispatchTasks() {
  if (!solo_ready.empty()) DispatchSolo();
  std::vector<WorkerId> candidates;
  if (pushed_ready) {
    for (const auto& [load, id] : task_open) candidates.push_back(id);
  } else {
    for (const WorkerId id : dirty_workers) {
      if (open_keys[id].task != kNotOpen) candidates.push_back(id);
    }
  }
  dirty_workers.clear();
  pushed_ready = false;
  // In rounds, so that few tasks spread over the workers and many fill them evenly.
  while (!candidates.empty() && !ready.empty()) {
    std::vector<WorkerId> again;
    for (const WorkerId id : candidates) {
      if (GrantNext(workers[id])) again.push_back(id);
    }
    candidates.swap(again);
  }
}

/// A task of a group that the worker or its node has worked on, when one is near the head.
std::size_t Core::Machine::ChooseTask(const ReadyQueue::JobTasks& tasks, const Worker& worker) {
  if (tasks.tasks.front().group == 0) return 0;
  std::array<Kinship, kAffinityHead> head;
  const std::size_t count = std::min(head.size(), tasks.tasks.size());
  for (std::size_t i = 0; i < count; ++i) {
    head[i] = KinshipOf(tasks.tasks[i], worker);
    if (head[i] == Kinship::kWorker && tasks.passed_over < kMaxPassedOver) return i;
  }
  return ChooseKin(std::span(head).first(count), tasks.passed_over);
}

Kinship Core::Machine::KinshipOf(const ReadyTask& entry, const Worker& worker) {
  const Job* job = table.Find(entry.task.job);
  if (job == nullptr || entry.group == 0) return Kinship::kNowhere;
  const auto group = job->groups.find(entry.group);
  const WorkerId last = group == job->groups.end() ? kNoWorker : group->second.last_worker;
  if (last == kNoWorker || last >= workers.size()) return Kinship::kNowhere;
  if (last == worker.id) return Kinship::kWorker;
  return workers[last].node == worker.node ? Kinship::kNode : Kinship::kElsewhere;
}

/// Leases the best task this worker has room for; false when there is none.
bool Core::Machine::GrantNext(Worker& worker) {
  while (open_keys[worker.id].task != kNotOpen) {
    ReadyQueue::Lane* lane = ready.Best([&](const Resources& need) {
      return Fits(need, worker.capacity) && NodeHasRoom(worker, need);
    });
    if (lane == nullptr) return false;
    const ReadyQueue::JobTasks& head = ReadyQueue::Head(*lane);
    const std::size_t at = ChooseTask(head, worker);
    const ReadyTask entry = head.tasks[at];
    if (!Valid(entry)) {
      ready.Pop(*lane, at);
      continue;
    }
    const protocol::TaskSpec& spec = table.Find(entry.task)->spec;
    const std::int64_t estimate = task_pace.EstimateUs(spec.op, spec.weight);
    const auto queued = static_cast<std::uint32_t>(worker.tasks.size());
    if (!QueueHasRoom(queued, worker.queued_us, estimate)) return false;
    ready.Pop(*lane, at);
    const Job& job = *table.Find(entry.task.job);
    if (LeaseBytes(job, job.tasks[entry.task.index]) > kMaxLeaseMessageBytes) {
      FailTask(entry.task,
               {static_cast<std::int32_t>(absl::StatusCode::kInvalidArgument),
                "lease task: its inputs are too large for one message"},
               false);
      continue;
    }
    LeaseTask(worker, entry);
    return true;
  }
  return false;
}

/// Whether the node can carry this worker at `need`.
bool Core::Machine::NodeHasRoom(Worker& worker, const Resources& need) {
  if (Fits(need, worker.assigned)) return true;
  Node& node = NodeOf(worker);
  const Resources then = Largest(worker.assigned, need);
  const Resources total{
      node.assigned.cpu_millis - worker.assigned.cpu_millis + then.cpu_millis,
      node.assigned.gpus - worker.assigned.gpus + then.gpus,
      node.assigned.memory_bytes - worker.assigned.memory_bytes + then.memory_bytes};
  if (Fits(total, node.capacity)) return true;
  node.refused = true;
  return false;
}

void Core::Machine::LeaseTask(Worker& worker, const ReadyTask& entry) {
  Task& task = *table.Find(entry.task);
  Job& job = *table.Find(entry.task.job);
  Lease lease;
  lease.number = NextLease();
  lease.worker = worker.id;
  lease.worker_incarnation = worker.incarnation;
  lease.granted_at = now;
  lease.deadline = now + options.lease_ms;
  lease.task = entry.task;
  lease.estimate_us = task_pace.EstimateUs(task.spec.op, task.spec.weight);
  task.state = TaskState::kLeased;
  task.lease = lease.number;
  if (job.state == JobState::kQueued) job.state = JobState::kRunning;
  ++job.tasks_running;
  if (task.spec.group != 0) job.groups[task.spec.group].last_worker = worker.id;
  if (worker.tasks.empty()) worker.busy_since = now;
  worker.next_expiry = worker.tasks.empty() && worker.shards.empty()
                           ? lease.deadline
                           : std::min(worker.next_expiry, lease.deadline);
  worker.tasks.insert(worker.tasks.end(), lease.number);
  worker.occupancy.Add(task.spec.resources);
  worker.queued_us += lease.estimate_us;
  const std::size_t bytes = LeaseBytes(job, task);
  std::size_t& total = grant_bytes[worker.id];
  if (total != 0 && total + bytes > kMaxLeaseMessageBytes) FlushGrants(worker.id);
  total += bytes;
  grants[worker.id].tasks.push_back(DescribeLease(lease));
  leases.emplace(lease.number, lease);
  Reassign(worker);
}

/// Sends what was collected for the worker; more follows in another message.
void Core::Machine::FlushGrants(WorkerId id) {
  Send(workers[id].peer, 0, std::move(grants[id]));
  grants[id] = {};
  grant_bytes[id] = 0;
}

protocol::TaskLease Core::Machine::DescribeLease(const Lease& lease) {
  const Job& job = *table.Find(lease.task.job);
  const Task& task = job.tasks[lease.task.index];
  protocol::TaskLease granted;
  granted.lease = lease.number;
  granted.task = lease.task;
  granted.op = task.spec.op;
  granted.payload = task.spec.payload;
  for (const std::uint32_t on : task.spec.depends_on) {
    const bool done = job.tasks[on].state == TaskState::kDone;
    granted.inputs.push_back(done ? job.tasks[on].result : std::string());
  }
  granted.manifest = job.manifest;
  granted.submitter = job.submitter;
  granted.read_prefixes = job.read_prefixes;
  granted.write_prefixes = job.write_prefixes;
  return granted;
}

/// The lease is over, however it ended. The caller says what becomes of the task.
void Core::Machine::DropTaskLease(LeaseNumber number) {
  const auto it = leases.find(number);
  if (it == leases.end()) return;
  const Lease lease = it->second;
  leases.erase(it);
  Job* job = table.Find(lease.task.job);
  Task& task = job->tasks[lease.task.index];
  task.lease = {};
  if (task.state == TaskState::kLeased) task.state = TaskState::kWaiting;
  --job->tasks_running;
  Worker& worker = workers[lease.worker];
  worker.tasks.erase(number);
  worker.occupancy.Remove(task.spec.resources);
  worker.queued_us -= lease.estimate_us;
  if (worker.tasks.empty()) worker.solo = worker.solo && !worker.shards.empty();
}

/// Suspects run alone: on an idle worker, or on one that is kept free until it is idle.
void Core::Machine::DispatchSolo() {
  for (std::size_t left = solo_ready.size(); left != 0; --left) {
    const ReadyTask entry = solo_ready.front();
    solo_ready.pop_front();
    if (!Valid(entry)) continue;
    const Resources need = table.Find(entry.task)->spec.resources;
    Worker* chosen = nullptr;
    Worker* next = nullptr;
    for (Worker& worker : workers) {
      if (!CanLease(worker) || worker.solo || !Fits(need, worker.capacity)) continue;
      const bool idle = worker.tasks.empty() && worker.shards.empty();
      if (idle && NodeHasRoom(worker, need)) {
        chosen = &worker;
        break;
      }
      if (next == nullptr || worker.tasks.size() < next->tasks.size()) next = &worker;
    }
    if (chosen == nullptr) {
      solo_ready.push_front(entry);
      if (reserved == kNoWorker && next != nullptr) {
        reserved = next->id;
        next->reserved = true;
        Reindex(*next);
      }
      return;
    }
    Unreserve();
    chosen->solo = true;
    LeaseTask(*chosen, entry);
  }
}

}  // namespace patchbay::scheduler
