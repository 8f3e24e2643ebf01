#include "tests/sim/sim_audit.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "scheduler/policy/back_off.h"
#include "scheduler/policy/limits.h"

namespace patchbay::sim {

using protocol::JobState;
using protocol::TaskLease;
using protocol::TaskState;

namespace {

bool Ended(JobState state) { return state != JobState::kRunning; }

bool Within(const protocol::Resources& need, const protocol::Resources& room) {
  return need.cpu_millis <= room.cpu_millis && need.gpus <= room.gpus &&
         need.memory_bytes <= room.memory_bytes;
}

/// Whether the task is for the threads that plan.
bool Plans(const ModelJob& job, const ModelTask& task) {
  return job.kind == "stream" && task.spec.resources.gpus == 0;
}

/// Whether `one` may wait for `other` no longer.
bool Satisfied(const ModelTask& one, const ModelTask& other) {
  return other.state == TaskState::kDone || (one.spec.after_failures && !other.IsOpen());
}

}  // namespace

Audit::Audit(std::function<void(const std::string&)> violation)
    : violation_(std::move(violation)) {}

const ModelJob* Audit::Find(JobId job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second;
}

void Audit::SchedulerStarted() {
  fresh_.clear();
  fresh_jobs_.clear();
  last_place_.clear();
  for (const auto& [place, lease] : newest_) unordered_.insert(place.first);
}

// ---------------------------------------------------------------- records

void Audit::Durable(const scheduler::Record& record) {
  std::visit([this](const auto& body) { OnRecord(body); }, record.body);
}

void Audit::Emitted(const scheduler::Record& record) {
  JobId job = 0;
  if (const auto* fail = std::get_if<scheduler::FailRecord>(&record.body)) job = fail->task.job;
  if (const auto* cancel = std::get_if<scheduler::CancelRecord>(&record.body)) job = cancel->job;
  if (const auto* teams = std::get_if<scheduler::ApplyTeamsRecord>(&record.body)) Moved(*teams);
  if (job == 0) return;
  fresh_jobs_.erase(job);
  NoteFresh(job);
}

/// Jobs of teams that are gone are in another team now than later ones of their user.
void Audit::Moved(const scheduler::ApplyTeamsRecord& record) {
  for (const auto& [id, job] : jobs_) {
    const bool stays = job.team.empty() || record.policy.find(job.team) != std::string::npos;
    if (stays || fresh_jobs_.erase(id) == 0) continue;
    NoteFresh(id);
  }
}

void Audit::OnRecord(const scheduler::StartRecord& record) {
  if (record.incarnation <= incarnation_) Say("I1: the scheduler's incarnation does not rise");
  incarnation_ = record.incarnation;
}

void Audit::OnRecord(const scheduler::SubmitRecord& record) {
  ModelJob& job = jobs_[record.job];
  if (!job.tasks.empty()) Say("I5: a job number was given twice");
  job.kind = record.kind;
  job.submitter = record.submitter;
  job.team = record.team;
  job.priority = record.priority;
  job.tasks.emplace_back().spec = record.root;
  fresh_jobs_.insert(record.job);
  NoteFresh(record.job);
}

ModelTask* Audit::Open(const TaskId& id, const char* what) {
  const auto job = jobs_.find(id.job);
  if (job == jobs_.end() || id.index >= job->second.tasks.size()) {
    Say(StrCat("I5: ", what, " of task ", id.ToString(), ", which does not exist"));
    return nullptr;
  }
  ModelTask& task = job->second.tasks[id.index];
  if (task.IsOpen() && !Ended(job->second.state)) return &task;
  Say(StrCat("I5: ", what, " of task ", id.ToString(), ", which has ended"));
  return nullptr;
}

/// Tasks that can no longer run end: in order, as dependencies have lower indices.
void Audit::CancelLost(ModelJob& job, std::size_t from) {
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    ModelTask& task = job.tasks[i];
    if (!task.IsOpen() || task.spec.after_failures) continue;
    const bool lost = std::any_of(
        task.spec.depends_on.begin(), task.spec.depends_on.end(), [&](std::uint32_t on) {
          return !job.tasks[on].IsOpen() && job.tasks[on].state != TaskState::kDone;
        });
    if (lost || (i >= from && job.failed_groups.count(task.spec.group) != 0)) {
      task.state = TaskState::kCancelled;
    }
  }
}

void Audit::OnRecord(const scheduler::CommitRecord& record) {
  ++commits_;
  ModelTask* task = Open(record.task, "commit");
  if (task == nullptr) return;
  ModelJob& job = jobs_.at(record.task.job);
  for (const std::uint32_t on : task->spec.depends_on) {
    if (!Satisfied(*task, job.tasks[on])) Say("I15: a task committed before its dependencies");
  }
  if (task->grants == 0) {
    Say(StrCat("I15: task ", record.task.ToString(), " committed what ran before its retry"));
  }
  task->result = record.result;
  task->state = TaskState::kDone;
  const auto first = static_cast<std::uint32_t>(job.tasks.size());
  for (const protocol::TaskSpec& spec : record.spawned) {
    ModelTask& spawned = job.tasks.emplace_back();
    spawned.spec = spec;
    spawned.spawned_by = record.task.index;
    for (std::uint32_t& on : spawned.spec.depends_on) {
      if (on >= protocol::kSpawnedBase) on = first + (on - protocol::kSpawnedBase);
    }
  }
  CancelLost(job, first);
  FinishIfEnded(job);
  NoteFresh(record.task.job);
}

void Audit::OnRecord(const scheduler::FailRecord& record) {
  ModelTask* task = Open(record.task, "failure");
  if (task == nullptr) return;
  ModelJob& job = jobs_.at(record.task.job);
  if (record.quarantined) {
    quarantined_.insert(record.task.job);
    if (task->grants < scheduler::kMaxSoloDeaths)
      Say("I16: quarantined before it ran often enough");
  } else if (scheduler::IsRetryable(record.outcome.code) &&
             task->grants < scheduler::kMaxTaskAttempts) {
    Say("I16: failed for good before its attempts were used");
  }
  task->state = record.quarantined ? TaskState::kQuarantined : TaskState::kFailed;
  const std::uint32_t group = task->spec.group;
  if (job.failed_groups.insert(group).second) {
    for (ModelTask& member : job.tasks) {
      const bool goes_on = member.spec.after_failures || !member.IsOpen();
      if (!goes_on && (group == 0 || member.spec.group == group)) {
        member.state = TaskState::kCancelled;
      }
    }
  }
  CancelLost(job, job.tasks.size());
  FinishIfEnded(job);
  NoteFresh(record.task.job);
}

void Audit::OnRecord(const scheduler::CancelRecord& record) {
  ModelJob& job = jobs_.at(record.job);
  if (Ended(job.state)) Say("I5: an ended job was cancelled");
  job.state = JobState::kCancelled;
  for (ModelTask& task : job.tasks) {
    if (task.IsOpen()) task.state = TaskState::kCancelled;
  }
  NoteFresh(record.job);
}

void Audit::OnRecord(const scheduler::WorkerSeenRecord& record) {
  workers_[{record.node, record.index}] = record.worker_incarnation;
  workers_seen_.insert(record.worker_incarnation);
}

void Audit::OnRecord(const scheduler::WorkerGoneRecord& record) {
  workers_.erase({record.node, record.index});
}

void Audit::OnRecord(const scheduler::EndStreamRecord& record) {
  ModelJob& job = jobs_.at(record.job);
  if (Ended(job.state)) Say("I5: an ended stream ended");
  job.state = record.state;
}

void Audit::OnRecord(const scheduler::FinishUnitRecord& record) {
  ModelJob& job = jobs_.at(record.job);
  if (Ended(job.state)) Say("I19: a unit of an ended job was finished");
  if (!job.units.emplace(record.unit, record.outcome.code).second) {
    Say(StrCat("I19: unit ", record.unit, " was finished twice"));
  }
}

void Audit::OnRecord(const scheduler::DetachRecord& record) {
  jobs_.at(record.job).detached.insert(record.rank);
}

void Audit::OnRecord(const scheduler::RetryRecord& record) {
  ModelJob& job = jobs_.at(record.job);
  if (++job.retries > 1) Say("I5: one retry was carried out twice");
  job.failed_groups.clear();
  job.detached.clear();
  for (const std::uint32_t index : StartOver(job)) {
    job.tasks[index].state = TaskState::kWaiting;
    job.tasks[index].grants = 0;
  }
  job.state = JobState::kRunning;
  fresh_jobs_.erase(record.job);
  NoteFresh(record.job);
}

/// The tasks that a retry runs again, found by adding until nothing is missing; the superseded ones
/// are marked. The shapes that the simulation submits never make a task outlive its dependencies.
std::set<std::uint32_t> Audit::StartOver(ModelJob& job) {
  std::set<std::uint32_t> again;
  std::vector<ModelTask>& tasks = job.tasks;
  const auto lost = [](const ModelTask& task) {
    return !task.superseded && !task.IsOpen() && task.state != TaskState::kDone;
  };
  const auto below = [&](std::uint32_t index, std::uint32_t above) {
    while (index != UINT32_MAX && index != above) index = tasks[index].spawned_by;
    return index == above;
  };
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (!lost(tasks[i])) continue;
    std::uint32_t first = i;
    while (tasks[i].spec.group != 0 && tasks[first].spawned_by != UINT32_MAX &&
           tasks[tasks[first].spawned_by].spec.group == tasks[i].spec.group) {
      first = tasks[first].spawned_by;
    }
    again.insert(first);
  }
  for (std::size_t before = SIZE_MAX; before != again.size();) {
    before = again.size();
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      ModelTask& task = tasks[i];
      if (again.count(task.spawned_by) != 0 ||
          (task.spawned_by != UINT32_MAX && tasks[task.spawned_by].superseded)) {
        task.superseded = true;
        if (task.IsOpen() || task.state == TaskState::kDone) task.state = TaskState::kCancelled;
        before -= again.erase(i);
      }
      if (task.superseded || task.IsOpen()) continue;
      const bool after = std::any_of(
          task.spec.depends_on.begin(), task.spec.depends_on.end(), [&](std::uint32_t on) {
            return (task.spec.after_failures || tasks[on].spec.after_failures) &&
                   (again.count(on) != 0 || tasks[on].superseded);
          });
      const bool sums_up =
          task.IsSummary() && std::any_of(again.begin(), again.end(), [&](std::uint32_t one) {
            return !tasks[one].IsSummary() && !below(one, i);
          });
      if (after || sums_up) again.insert(i);
    }
  }
  return again;
}

void Audit::FinishIfEnded(ModelJob& job) {
  bool all_done = true, any_through = false;
  std::map<std::uint32_t, bool> through;
  for (const ModelTask& task : job.tasks) {
    if (task.IsOpen()) return;
    if (task.superseded) continue;
    const bool done = task.state == TaskState::kDone;
    all_done = all_done && done;
    const auto group = through.emplace(task.spec.group, done).first;
    group->second = group->second && done;
  }
  for (const auto& [group, whole] : through) any_through = any_through || (group != 0 && whole);
  if (all_done) {
    if (job.kind != "stream") job.state = JobState::kDone;
  } else {
    const bool partly = any_through && job.failed_groups.count(0) == 0;
    job.state = partly ? JobState::kPartlyFailed : JobState::kFailed;
  }
}

std::set<std::pair<Audit::Rank, std::uint32_t>>& Audit::FreshLike(const ModelJob& job,
                                                                  const ModelTask& task) {
  const protocol::Resources& r = task.spec.resources;
  return fresh_[{job.team, job.submitter, Plans(job, task), r.cpu_millis, r.gpus, r.memory_bytes}];
}

/// Tracks the tasks that may be leased, of jobs submitted while this scheduler runs.
void Audit::NoteFresh(JobId id) {
  const ModelJob& job = jobs_.at(id);
  for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
    const ModelTask& task = job.tasks[i];
    auto& lane = FreshLike(job, task);
    const bool ready =
        fresh_jobs_.count(id) != 0 && !Ended(job.state) && task.IsOpen() && task.grants == 0 &&
        !task.IsSummary() &&
        std::all_of(task.spec.depends_on.begin(), task.spec.depends_on.end(),
                    [&](std::uint32_t on) { return Satisfied(task, job.tasks[on]); });
    const std::pair<Rank, std::uint32_t> entry{{-job.priority, id}, i};
    if (ready) {
      lane.insert(entry);
    } else {
      lane.erase(entry);
    }
  }
}

// ---------------------------------------------------------------- messages

void Audit::NewLease(const LeaseNumber& lease, const Holder& holder) {
  if (!granted_.insert(lease).second) {
    Say(StrCat("I1: lease number ", lease.ToString(), " was given twice"));
  }
  if (lease.incarnation != incarnation_) {
    Say(StrCat("I1: lease ", lease.ToString(), " under an incarnation that is not the durable ",
               incarnation_));
  }
  held_by_[holder.incarnation].push_back(lease);
}

void Audit::GrantedTask(const Holder& holder, const TaskLease& lease) {
  NewLease(lease.lease, holder);
  ModelTask* task = Open(lease.task, "lease");
  if (task == nullptr) return;
  const ModelJob& job = jobs_.at(lease.task.job);
  CheckInputs(job, *task, lease);
  if (lease.planning != Plans(job, *task)) {
    Say(StrCat("I17: task ", lease.task.ToString(), " was leased in another's lane"));
  }
  if (!Within(task->spec.resources, holder.capacity)) {
    Say(StrCat("I9: task ", lease.task.ToString(), " is too large for its worker"));
  }
  tasks_now_.emplace_back(lease.lease, lease);
  tasks_held_by_[holder.incarnation].push_back(lease.lease);
}

void Audit::CheckInputs(const ModelJob& job, const ModelTask& task, const TaskLease& lease) {
  if (task.IsSummary()) {
    for (const ModelTask& other : job.tasks) {
      if (other.IsOpen() && !other.IsSummary()) Say("I15: a summary was leased too early");
    }
  }
  if (lease.op != task.spec.op || lease.payload != task.spec.payload ||
      lease.inputs.size() != task.spec.depends_on.size()) {
    return Say(StrCat("I15: the lease of task ", lease.task.ToString(), " describes another task"));
  }
  for (std::size_t i = 0; i < lease.inputs.size(); ++i) {
    const ModelTask& input = job.tasks[task.spec.depends_on[i]];
    if (!Satisfied(task, input)) Say("I15: a task was leased before its dependencies ended");
    if (input.state == TaskState::kDone && lease.inputs[i] != input.result) {
      Say(StrCat("I15: task ", lease.task.ToString(), " was given other inputs"));
    }
  }
}

/// I7: among tasks of one user that need the same and were never leased, the better rank goes
/// first.
void Audit::CheckOrder(const TaskId& id, const ModelTask& task) {
  auto& lane = FreshLike(jobs_.at(id.job), task);
  const Rank rank{-jobs_.at(id.job).priority, id.job};
  const bool fresh = task.grants == 0 && fresh_jobs_.count(id.job) != 0;
  if (fresh && !lane.empty() && lane.begin()->first < rank) {
    Say(StrCat("I7: task ", id.ToString(), " went before task ", lane.begin()->first.second, "/",
               lane.begin()->second, ", which has a better rank"));
  }
  lane.erase({rank, id.index});
}

void Audit::GrantedShard(const Holder& holder, const protocol::ShardLease& lease,
                         std::uint64_t ring) {
  NewLease(lease.lease, holder);
  const ModelJob* job = Find(lease.stream);
  if (job == nullptr || Ended(job->state)) Say("I5: a shard of an ended stream was leased");
  const RingShard place{ring, lease.shard};
  const auto before = newest_.find(place);
  if (before != newest_.end() && before->second.lease.incarnation == lease.lease.incarnation &&
      (fenced_.count(place) == 0 || fenced_.at(place) < before->second.lease)) {
    Say(StrCat("I8: shard ", lease.shard.ToString(), " is leased again, and lease ",
               before->second.lease.ToString(), " of it was not fenced"));
  }
  if (before == newest_.end()) shards_now_.push_back({lease.lease, {ring, lease.shard}});
  newest_[place] = lease;
}

void Audit::VoidAllOf(std::uint64_t worker_incarnation) {
  for (const LeaseNumber& lease : held_by_[worker_incarnation]) void_.insert(lease);
}

void Audit::LostTasksOf(std::uint64_t worker_incarnation) {
  for (const LeaseNumber& lease : tasks_held_by_[worker_incarnation]) void_.insert(lease);
}

void Audit::Fencing(std::uint64_t ring, const protocol::FenceShard& fence) {
  void_.insert(fence.lease);
  if (fence.lease.counter == 0) unordered_.insert(ring);
}

void Audit::Fenced(std::uint64_t ring, const ShardId& shard, const LeaseNumber& lease) {
  LeaseNumber& newest = fenced_[{ring, shard}];
  newest = std::max(newest, lease);
}

void Audit::Written(std::uint64_t ring, const protocol::ShardLease& lease) {
  const auto newest = newest_.find({ring, lease.shard});
  if (newest == newest_.end() || newest->second.lease == lease.lease) return;
  const Grant& now = newest->second.grant;
  if (now.slot == lease.grant.slot && now.slot_generation == lease.grant.slot_generation) {
    Say(StrCat("I8: lease ", lease.lease.ToString(), " writes where lease ",
               newest->second.lease.ToString(), " may write"));
  }
}

bool Audit::IsNewest(std::uint64_t ring, const protocol::ShardLease& lease) const {
  const auto newest = newest_.find({ring, lease.shard});
  return newest != newest_.end() && newest->second.lease == lease.lease &&
         void_.count(lease.lease) == 0;
}

/// I6: a report that was accepted under a live lease is in the journal.
void Audit::Acknowledged(const LeaseNumber& lease, const TaskId& id, bool succeeded) {
  const ModelJob* job = Find(id.job);
  if (job == nullptr || job->retries != 0 || Ended(job->state) || !succeeded) return;
  if (!Stands(lease, id)) return;
  Say(StrCat("I6: the outcome of task ", id.ToString(), " was acknowledged and is not durable"));
}

bool Audit::Stands(const LeaseNumber& lease, const TaskId& task) const {
  const ModelJob* job = Find(task.job);
  return void_.count(lease) == 0 && lease.incarnation == incarnation_ && job != nullptr &&
         !Ended(job->state) && job->tasks[task.index].IsOpen();
}

protocol::Resources Audit::NeedOf(const TaskId& task) const {
  return Find(task.job)->tasks[task.index].spec.resources;
}

void Audit::Described(const protocol::JobRow& row) {
  const ModelJob* job = Find(row.job);
  if (job == nullptr) return Say("I6: a job was described that is not durable");
  if (job->retries != 0) return;
  const bool ended = row.state != JobState::kQueued && row.state != JobState::kRunning;
  if (ended && row.state != job->state) {
    Say(StrCat("I14: job ", row.job, " is said to be in state ", static_cast<int>(row.state),
               ", the journal says ", static_cast<int>(job->state)));
  }
  const auto done = static_cast<std::uint64_t>(
      std::count_if(job->tasks.begin(), job->tasks.end(),
                    [](const ModelTask& task) { return task.state == TaskState::kDone; }));
  if (row.tasks_done > done) Say("I6: tasks are said to be done that the journal does not have");
}

void Audit::EndTold(JobId stream) {
  const ModelJob& job = jobs_.at(stream);
  if (!Ended(job.state) && job.retries == 0) {
    Say("I6: a trainer was told of its stream's end, which is not durable");
  }
}

void Audit::CancelAcknowledged(JobId job) {
  if (!Ended(jobs_.at(job).state)) Say("I6: a cancel was acknowledged and is not durable");
}

void Audit::RetryAcknowledged(JobId job, std::uint64_t tasks) {
  if (tasks != 0 && jobs_.at(job).retries == 0) {
    Say("I6: a retry was acknowledged and is not durable");
  }
}

void Audit::DetachAcknowledged(JobId job, std::uint32_t rank) {
  const ModelJob& one = jobs_.at(job);
  if (!Ended(one.state) && one.detached.count(rank) == 0) {
    Say("I6: a detach was acknowledged and is not durable");
  }
}

void Audit::UnitAcknowledged(JobId job, std::uint64_t unit) {
  if (!IsFinished(job, unit)) Say("I6: a unit was acknowledged and is not durable");
}

bool Audit::IsFinished(JobId job, std::uint64_t unit) const {
  const ModelJob* const model = Find(job);
  return model != nullptr && model->units.count(unit) != 0;
}

void Audit::WorkerAcknowledged(std::uint64_t incarnation) {
  if (workers_seen_.count(incarnation) == 0)
    Say("I6: a worker was told that it is registered, which is not durable");
}

void Audit::ExitAcknowledged(std::uint64_t incarnation) {
  const bool known = std::any_of(workers_.begin(), workers_.end(),
                                 [&](const auto& one) { return one.second == incarnation; });
  if (known) Say("I6: a worker's end was acknowledged and is not durable");
}

unsigned Audit::GrantsOf(const TaskId& task) const {
  const ModelJob* job = Find(task.job);
  return job == nullptr || task.index >= job->tasks.size() ? 0 : job->tasks[task.index].grants;
}

void Audit::IncarnationTold(std::uint32_t incarnation) {
  if (incarnation > incarnation_) Say("I6: an incarnation was told that is not durable");
}

void Audit::EndOfEvent() {
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::sort(tasks_now_.begin(), tasks_now_.end(), earlier);
  std::sort(shards_now_.begin(), shards_now_.end(), earlier);
  for (const auto& [number, lease] : tasks_now_) {
    ModelTask& task = jobs_.at(lease.task.job).tasks[lease.task.index];
    CheckOrder(lease.task, task);
    ++task.grants;
  }
  for (const auto& [number, shard] : shards_now_) {
    const Place place{{shard.second.epoch, shard.second.batch}, shard.second.shard};
    const auto last = last_place_.find(shard.first);
    if (last != last_place_.end() && place < last->second && unordered_.count(shard.first) == 0) {
      Say(StrCat("I3: shard ", shard.second.ToString(), " was leased after a later one"));
    }
    last_place_[shard.first] = place;
  }
  tasks_now_.clear();
  shards_now_.clear();
}

}  // namespace patchbay::sim
