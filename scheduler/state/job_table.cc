#include "scheduler/state/job_table.h"

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/format/json/described.h"
#include "runtime/model/stream/limits.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// Whether `dependency`, as it stands, no longer holds `task` up.
bool Satisfies(const Task& dependency, const Task& task) {
  return dependency.state == TaskState::kDone ||
         (task.spec.after_failures && IsEnded(dependency.state));
}

Status Misfit(std::string_view what, JobId job) {
  return Internal("apply record: job ", job, ": ", what);
}

/// How a job without open tasks ended: kPartlyFailed when at least one group came through whole and
/// the job's own group did not fail, else kFailed.
JobState EndState(const Job& job) {
  if (job.tasks_failed == 0 && job.tasks_cancelled == 0) return JobState::kDone;
  for (const auto& [number, group] : job.groups) {
    if (number == 0 && group.failed) return JobState::kFailed;
    const bool through =
        std::all_of(group.members.begin(), group.members.end(), [&](std::uint32_t index) {
          return job.tasks[index].superseded || job.tasks[index].state == TaskState::kDone;
        });
    if (number != 0 && through) return JobState::kPartlyFailed;
  }
  return JobState::kFailed;
}

}  // namespace

std::uint64_t TaskBytes(const protocol::TaskSpec& spec) {
  return sizeof(Task) + kTaskOverheadBytes + spec.op.size() + spec.payload.size() +
         spec.label.size() + 4 * spec.depends_on.size();
}

std::uint64_t UnitBytes(std::uint64_t units) { return units / 8; }

bool IsEnded(TaskState state) {
  return state == TaskState::kDone || state == TaskState::kFailed ||
         state == TaskState::kCancelled || state == TaskState::kQuarantined;
}

bool IsEnded(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }

void Effects::Clear() {
  runnable.clear();
  stopped.clear();
  ended.clear();
  forgotten.clear();
  planned.clear();
}

std::string_view NameOf(JobState state) {
  constexpr std::array<std::string_view, 6> kNames = {"queued", "running",       "done",
                                                      "failed", "partly failed", "cancelled"};
  return kNames[static_cast<std::size_t>(state)];
}

Payer PayerOf(const Job& job) { return {job.id, job.team, job.submitter}; }

Job* JobTable::Find(JobId id) {
  if (last_found_ != nullptr && last_found_->id == id) return last_found_;
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : last_found_ = it->second;
}
const Job* JobTable::Find(JobId id) const {
  if (last_found_ != nullptr && last_found_->id == id) return last_found_;
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}
Task* JobTable::Find(const TaskId& id) {
  Job* job = Find(id.job);
  return job != nullptr && id.index < job->tasks.size() ? &job->tasks[id.index] : nullptr;
}
JobId JobTable::FindSubmission(const std::string& submitter,
                               const std::string& submission_key) const {
  const auto it = submissions_.find({submitter, submission_key});
  return it == submissions_.end() ? 0 : it->second;
}

const Job* JobTable::FindOpenStream(const std::string& submitter, const std::string& name) const {
  const auto found = std::find_if(jobs_.rbegin(), jobs_.rend(), [&](const auto& entry) {
    const Job& job = entry.second;
    return job.IsStream() && !IsEnded(job.state) && job.submitter == submitter && job.name == name;
  });
  return found == jobs_.rend() ? nullptr : &found->second;
}

std::uint32_t JobTable::OpenJobsOf(const std::string& team) const {
  const auto open = open_of_.find(team);
  return open == open_of_.end() ? 0 : open->second;
}

void JobTable::CountOpened(const Job& job) { ++open_of_[job.team]; }

void JobTable::CountEnded(const Job& job) {
  if (--open_of_[job.team] == 0) open_of_.erase(job.team);
}

Status JobTable::CheckSpec(const protocol::TaskSpec& spec, const Job* job,
                           std::uint32_t siblings_before) {
  const auto refuse = [&](std::string_view cause) {
    return InvalidArgument("check task: ", spec.op, ": ", cause);
  };
  if (spec.op.empty() || spec.op.size() > kMaxNameBytes) {
    return InvalidArgument("check task: op name is empty or too long");
  }
  if (spec.payload.size() > kMaxPayloadBytes) return refuse("payload is too long");
  if (spec.label.size() > kMaxNameBytes) return refuse("label is too long");
  if (spec.weight > kMaxTaskWeight) return refuse("weight is too large");
  if (spec.depends_on.size() > kMaxDependencies) return refuse("too many dependencies");
  for (const std::uint32_t on : spec.depends_on) {
    if (on >= protocol::kSpawnedBase) {
      if (on - protocol::kSpawnedBase >= siblings_before) {
        return refuse("it may depend only on siblings spawned before it");
      }
    } else if (job == nullptr || on >= job->tasks.size()) {
      return refuse(StrCat("depends on task ", on, ", which the job does not have"));
    } else if (job->tasks[on].result_dropped) {
      return refuse(StrCat("depends on task ", on, ", whose result is no longer kept"));
    }
  }
  if (job != nullptr && job->tasks.size() + siblings_before >= kMaxTasksPerJob) {
    return ResourceExhausted("check task: job ", job->id, ": more than ", kMaxTasksPerJob,
                             " tasks");
  }
  return absl::OkStatus();
}

Status JobTable::Apply(Record&& record, Effects& effects) {
  return std::visit([&](auto&& body) { return ApplyBody(std::move(body), record.at, effects); },
                    std::move(record.body));
}

Status JobTable::ApplyBody(StartRecord&& r, std::int64_t, Effects&) {
  if (r.incarnation <= incarnation_) return Misfit("incarnation went back", 0);
  incarnation_ = r.incarnation;
  return absl::OkStatus();
}

void JobTable::SkipLost(std::uint64_t records) {
  const std::uint64_t room = std::numeric_limits<std::uint32_t>::max() / 2 - incarnation_ / 2;
  incarnation_ += static_cast<std::uint32_t>(std::min(records, room));
  next_job_ += records;
}

Status JobTable::ApplyBody(SubmitRecord&& r, std::int64_t at, Effects& effects) {
  if (r.job < next_job_) return Misfit("number used before", r.job);
  if (FindSubmission(r.submitter, r.submission_key) != 0) return Misfit("submitted twice", r.job);
  PB_RETURN_IF_ERROR(CheckSpec(r.root, nullptr, 0));
  next_job_ = r.job + 1;
  Job& job = jobs_[r.job];
  by_id_[r.job] = &job;
  submissions_[{r.submitter, r.submission_key}] = r.job;
  job.id = r.job;
  job.submitter = std::move(r.submitter);
  job.submission_key = std::move(r.submission_key);
  job.kind = std::move(r.kind);
  job.name = std::move(r.name);
  job.manifest = std::move(r.manifest);
  job.read_prefixes = std::move(r.read_prefixes);
  job.write_prefixes = std::move(r.write_prefixes);
  job.team = std::move(r.team);
  job.priority = r.priority;
  job.world_size = r.world_size;
  job.submitted_at = at;
  CountOpened(job);
  Grow(job, sizeof(Job) + job.manifest.size());
  AddTask(job, std::move(r.root), kNoTask);
  effects.runnable.push_back({job.id, 0});
  ForgetOldest(effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(CommitRecord&& r, std::int64_t at, Effects& effects) {
  Task* task = Find(r.task);
  if (task == nullptr || IsEnded(task->state)) return Misfit("commit of no open task", r.task.job);
  Job& job = *Find(r.task.job);
  for (std::size_t i = 0; i < r.spawned.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckSpec(r.spawned[i], &job, static_cast<std::uint32_t>(i)));
  }
  job.state = JobState::kRunning;
  usage_.Take(at, PayerOf(job), {r.cost, {}});
  job.progress_bytes += r.progress_bytes;
  Grow(job, r.result.size());
  task->result = std::move(r.result);
  if (!r.spawned.empty()) AddSpawned(job, r.task.index, std::move(r.spawned), effects);
  ReleaseInputs(job, job.tasks[r.task.index]);
  EndTask(job, r.task.index, TaskState::kDone, effects);
  if (job.IsStream() && job.PlanIsReady()) effects.planned.push_back(job.id);
  Settle(job, effects);
  FinishIfEnded(job, at, effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(FailRecord&& r, std::int64_t at, Effects& effects) {
  Task* task = Find(r.task);
  if (task == nullptr || IsEnded(task->state)) return Misfit("failure of no open task", r.task.job);
  Job& job = *Find(r.task.job);
  job.state = JobState::kRunning;
  if (job.failures.size() < kMaxFailedListed) {
    Grow(job, BytesOf(r.outcome));
    job.failures.emplace(r.task.index, std::move(r.outcome));
  }
  EndTask(job, r.task.index, r.quarantined ? TaskState::kQuarantined : TaskState::kFailed, effects);
  StopGroup(job, task->spec.group, effects);
  Settle(job, effects);
  FinishIfEnded(job, at, effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(CancelRecord&& r, std::int64_t at, Effects& effects) {
  Job* job = Find(r.job);
  if (job == nullptr || IsEnded(job->state)) return Misfit("cancel of no open job", r.job);
  for (std::uint32_t i = 0; i < job->tasks.size(); ++i) StopTask(*job, i, effects);
  just_ended_.clear();
  Finish(*job, JobState::kCancelled, at, effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(EndStreamRecord&& r, std::int64_t at, Effects& effects) {
  Job* job = Find(r.job);
  if (job == nullptr || IsEnded(job->state)) return Misfit("end of no open stream", r.job);
  for (std::uint32_t i = 0; i < job->tasks.size(); ++i) StopTask(*job, i, effects);
  just_ended_.clear();
  job->stream_outcome = std::move(r.outcome);
  Finish(*job, IsEnded(r.state) ? r.state : JobState::kFailed, at, effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(DetachRecord&& r, std::int64_t, Effects&) {
  Job* job = Find(r.job);
  if (job == nullptr || IsEnded(job->state)) return Misfit("detach from no open stream", r.job);
  job->detached.insert(r.rank);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(FinishUnitRecord&& r, std::int64_t, Effects&) {
  Job* job = Find(r.job);
  const bool fits = job != nullptr && !IsEnded(job->state) && r.unit < kMaxPatchesPerEpoch;
  if (!fits || job->units.Has(r.unit)) return Misfit("end of no open unit", r.job);
  FinishedUnits& units = job->units;
  if (units.finished.size() <= r.unit) {
    Grow(*job, UnitBytes(r.unit + 1) - UnitBytes(units.finished.size()));
    units.finished.resize(r.unit + 1);
  }
  units.finished[r.unit] = true;
  ++units.count;
  if (r.outcome.code == 0) return absl::OkStatus();
  if (units.failed.size() >= kMaxFailedListed) r.outcome = {.code = r.outcome.code};
  Grow(*job, BytesOf(r.outcome));
  units.failed.emplace(r.unit, std::move(r.outcome));
  return absl::OkStatus();
}

Status JobTable::ApplyBody(UsageRecord&& r, std::int64_t at, Effects&) {
  for (const Charge& charge : r.charges) usage_.Take(at, charge.payer, charge.usage);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(ChangeJobRecord&& r, std::int64_t, Effects&) {
  Job* job = Find(r.job);
  if (job == nullptr || IsEnded(job->state)) return Misfit("change of no open job", r.job);
  job->priority = r.priority;
  job->on_hold = r.on_hold;
  return absl::OkStatus();
}

Status JobTable::ApplyBody(ForgetJobRecord&& r, std::int64_t, Effects& effects) {
  const Job* job = Find(r.job);
  if (job == nullptr || job->finish_order == 0) return Misfit("forgetting of no ended job", r.job);
  Forget(*job, effects);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(ChangeNodeRecord&& r, std::int64_t, Effects&) {
  if (r.label.empty()) {
    node_labels_.erase(r.node);
  } else {
    node_labels_[r.node] = std::move(r.label);
  }
  if (r.by.empty()) {
    drained_nodes_.erase(r.node);
  } else {
    drained_nodes_[std::move(r.node)] = {std::move(r.by), std::move(r.reason)};
  }
  return absl::OkStatus();
}

Status JobTable::ApplyBody(WorkerSeenRecord&& r, std::int64_t, Effects&) {
  known_workers_[{std::move(r.node), r.index}] =
      KnownWorker{r.worker_incarnation, r.agent_incarnation, r.pid, std::move(r.host_identity)};
  return absl::OkStatus();
}

Status JobTable::ApplyBody(WorkerGoneRecord&& r, std::int64_t, Effects&) {
  known_workers_.erase({r.node, r.index});
  return absl::OkStatus();
}

Status JobTable::TakePolicy(std::string&& text) {
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "policy of teams"));
  PB_ASSIGN_OR_RETURN(teams_.policy, FromJson<model::TeamPolicy>(json, "policy of teams"));
  teams_.text = std::move(text);
  return absl::OkStatus();
}

Status JobTable::ApplyBody(ApplyTeamsRecord&& r, std::int64_t at, Effects&) {
  PB_RETURN_IF_ERROR(TakePolicy(std::move(r.policy)));
  teams_.source = std::move(r.source);
  teams_.by = std::move(r.by);
  teams_.at = at;
  for (auto& [id, job] : jobs_) {
    if (teams_.Has(job.team) || IsEnded(job.state)) continue;
    CountEnded(job);
    job.team = r.move_to;
    CountOpened(job);
  }
  return absl::OkStatus();
}

void JobTable::AddTask(Job& job, protocol::TaskSpec&& spec, std::uint32_t spawned_by) {
  const auto index = static_cast<std::uint32_t>(job.tasks.size());
  if (spawned_by != kNoTask && job.tasks[spawned_by].spec.group == spec.group) {
    ++job.tasks[spawned_by].group_children;
  }
  Grow(job, TaskBytes(spec));
  job.weight_total += spec.weight;
  TaskGroup& group = job.groups[spec.group];
  if (spec.group != 0) group.members.push_back(index);
  Task& task = job.tasks.emplace_back();
  task.spec = std::move(spec);
  task.spawned_by = spawned_by;
  Link(job, index);
}

/// Counts the dependencies that the task waits for, and registers it with them.
void JobTable::Link(Job& job, std::uint32_t index) {
  Task& task = job.tasks[index];
  task.waiting_on = 0;
  task.follows = task.spec.after_failures ||
                 std::any_of(task.spec.depends_on.begin(), task.spec.depends_on.end(),
                             [&](std::uint32_t on) { return job.tasks[on].follows; });
  for (const std::uint32_t on : task.spec.depends_on) {
    Task& dependency = job.tasks[on];
    dependency.consumers.push_back(index);
    if (task.state != TaskState::kDone || task.KeepsInputs()) ++dependency.consumers_open;
    if (!Satisfies(dependency, task)) ++task.waiting_on;
  }
  if (!task.IsSummary()) return;
  job.summaries.push_back(index);
  if (!IsEnded(task.state)) ++job.summaries_open;
}

void JobTable::AddSpawned(Job& job, std::uint32_t by, std::vector<protocol::TaskSpec>&& spawned,
                          Effects& effects) {
  const auto first = static_cast<std::uint32_t>(job.tasks.size());
  for (protocol::TaskSpec& spec : spawned) {
    for (std::uint32_t& on : spec.depends_on) {
      if (on >= protocol::kSpawnedBase) on = first + (on - protocol::kSpawnedBase);
    }
    AddTask(job, std::move(spec), by);
  }
  for (std::uint32_t i = first; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool lost = std::any_of(
        task.spec.depends_on.begin(), task.spec.depends_on.end(), [&](std::uint32_t on) {
          return IsEnded(job.tasks[on].state) && job.tasks[on].state != TaskState::kDone;
        });
    if (!task.spec.after_failures && (lost || job.groups[task.spec.group].failed)) {
      StopTask(job, i, effects);
    } else if (task.waiting_on == 0 && !task.IsSummary()) {
      effects.runnable.push_back({job.id, i});
    }
  }
}

void JobTable::Grow(Job& job, std::uint64_t bytes) {
  job.size_bytes += bytes;
  total_bytes_ += bytes;
}

void JobTable::Shrink(Job& job, std::uint64_t bytes) {
  job.size_bytes -= bytes;
  total_bytes_ -= bytes;
}

void JobTable::DropResult(Job& job, Task& task) {
  Shrink(job, task.result.size());
  std::string().swap(task.result);
  task.result_dropped = true;
}

/// Drops the inputs of a done task, unless a retry of the job may run it again, or it holds the
/// request of a stream, against which ranks that join are checked.
void JobTable::ReleaseInputs(Job& job, Task& task) {
  const bool asked = job.IsStream() && &task == &job.tasks.front();
  if (task.KeepsInputs() || asked) return;
  for (const std::uint32_t on : task.spec.depends_on) {
    Task& dependency = job.tasks[on];
    if (--dependency.consumers_open == 0 && on != 0) DropResult(job, dependency);
  }
  Shrink(job, task.spec.payload.size() + 4 * task.spec.depends_on.size());
  std::string().swap(task.spec.payload);
  std::vector<std::uint32_t>().swap(task.spec.depends_on);
}

/// The one place where a task ends. Settle must follow.
void JobTable::EndTask(Job& job, std::uint32_t index, TaskState state, Effects&) {
  Task& task = job.tasks[index];
  job.SetState(task, state);
  if (task.IsSummary()) --job.summaries_open;
  if (state == TaskState::kDone) {
    ++job.tasks_done;
    job.weight_done += task.spec.weight;
  } else {
    ++(state == TaskState::kCancelled ? job.tasks_cancelled : job.tasks_failed);
  }
  just_ended_.push_back(index);
}

void JobTable::StopTask(Job& job, std::uint32_t index, Effects& effects) {
  if (IsEnded(job.tasks[index].state)) return;
  EndTask(job, index, TaskState::kCancelled, effects);
  effects.stopped.push_back({job.id, index});
}

/// Ends the rest of a failed task's group, except tasks that run after failures.
void JobTable::StopGroup(Job& job, std::uint32_t group, Effects& effects) {
  TaskGroup& entry = job.groups[group];
  if (entry.failed) return;
  entry.failed = true;
  const auto stop = [&](std::uint32_t index) {
    if (!job.tasks[index].spec.after_failures) StopTask(job, index, effects);
  };
  if (group == 0) {
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) stop(i);
  } else {
    for (const std::uint32_t member : entry.members) stop(member);
  }
}

/// Tells the dependents of every task that just ended: they may run, or end as well.
void JobTable::Settle(Job& job, Effects& effects) {
  if (just_ended_.empty()) return;
  while (!just_ended_.empty()) {
    const Task& ended = job.tasks[just_ended_.back()];
    just_ended_.pop_back();
    for (const std::uint32_t consumer : ended.consumers) {
      Task& next = job.tasks[consumer];
      if (IsEnded(next.state)) continue;
      if (!Satisfies(ended, next)) {
        StopTask(job, consumer, effects);
      } else if (--next.waiting_on == 0) {
        effects.runnable.push_back({job.id, consumer});
      }
    }
  }
  if (job.summaries_open == 0 || job.OpenTasks() != job.summaries_open) return;
  for (const std::uint32_t index : job.summaries) {
    if (!IsEnded(job.tasks[index].state)) effects.runnable.push_back({job.id, index});
  }
}

void JobTable::FinishIfEnded(Job& job, std::int64_t at, Effects& effects) {
  if (IsEnded(job.state) || job.OpenTasks() != 0) return;
  const JobState state = EndState(job);
  if (job.IsStream() && state == JobState::kDone) return;
  Finish(job, state, at, effects);
}

void JobTable::Finish(Job& job, JobState state, std::int64_t at, Effects& effects) {
  job.state = state;
  job.on_hold = false;  // a retry runs at once
  job.finished_at = at;
  job.finish_order = next_finish_++;
  if (state == JobState::kDone) {
    // Results that no task of the job consumed are for the submitter to fetch, as the root's result
    // is.
    for (std::size_t i = 1; i < job.tasks.size(); ++i) {
      Task& task = job.tasks[i];
      if (!task.result_dropped && !task.consumers.empty()) DropResult(job, task);
    }
  }
  finished_.insert({job.finish_order, job.id});
  CountEnded(job);
  finished_bytes_ += job.size_bytes;
  effects.ended.push_back(job.id);
  ForgetOldest(effects);
}

Status JobTable::CheckBytes() const {
  std::uint64_t open = 0, finished = 0;
  std::map<std::string, std::uint32_t> of_team;
  for (const auto& [id, job] : jobs_) {
    (job.finish_order == 0 ? open : finished) += job.size_bytes;
    if (job.finish_order != 0) continue;
    ++of_team[job.team];
  }
  for (const auto& [team, jobs] : of_team) {
    if (OpenJobsOf(team) != jobs) {
      return Internal("job table: open jobs of team ", team, " are not counted right");
    }
  }
  if (of_team.size() != open_of_.size()) return Internal("job table: open jobs of no team");
  if (open == open_bytes() && finished == finished_bytes_) return absl::OkStatus();
  return Internal("job table: open jobs hold ", open, " bytes, not ", open_bytes(), "; ended ones ",
                  finished, ", not ", finished_bytes_);
}

void JobTable::ForgetOldest(Effects& effects) {
  while (finished_.size() > 1 &&
         (finished_.size() > kMaxFinishedJobs || finished_bytes_ > kMaxFinishedBytes)) {
    Forget(jobs_.at(finished_.begin()->second), effects);
  }
}

void JobTable::Forget(const Job& job, Effects& effects) {
  const JobId id = job.id;
  finished_.erase({job.finish_order, id});
  finished_bytes_ -= job.size_bytes;
  total_bytes_ -= job.size_bytes;
  submissions_.erase({job.submitter, job.submission_key});
  by_id_.erase(id);
  last_found_ = nullptr;
  jobs_.erase(id);
  effects.forgotten.push_back(id);
}

}  // namespace patchbay::scheduler
