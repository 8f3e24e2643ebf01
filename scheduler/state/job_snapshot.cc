// The durable state as bytes, which compaction writes and the state hash covers.
#include "runtime/core/other_version.h"
#include "scheduler/state/job_table.h"
#include "scheduler/state/wire.h"

namespace patchbay::scheduler {
namespace {

/// Ready, leased and waiting are one state on disk.
TaskState Durable(TaskState state) { return IsEnded(state) ? state : TaskState::kWaiting; }

/// Whether a job's first task has started is not durable.
JobState Durable(JobState state) { return IsEnded(state) ? state : JobState::kRunning; }

void WriteTask(WireWriter& out, const Task& task) {
  out.Spec(task.spec);
  out.U64(static_cast<std::uint64_t>(Durable(task.state)));
  out.Text(task.result);
  out.U64(task.result_dropped ? 1 : 0);
  out.U64(task.spawned_by == kNoTask ? 0 : task.spawned_by + std::uint64_t{1});
  out.U64(task.superseded ? 1 : 0);
}

/// Eight units a byte.
void WriteUnits(WireWriter& out, const FinishedUnits& units) {
  std::string bits((units.finished.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < units.finished.size(); ++i) {
    if (units.finished[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
  }
  out.U64(units.finished.size());
  out.Text(bits);
  out.U64(units.failed.size());
  for (const auto& [unit, outcome] : units.failed) {
    out.U64(unit);
    out.Outcome(outcome);
  }
}

bool ReadUnits(WireReader& in, std::uint64_t version, FinishedUnits& units) {
  const std::uint64_t size = in.U64();
  const std::string bits = in.Text();
  if (!in.ok() || bits.size() != size / 8 + (size % 8 != 0 ? 1 : 0)) return false;
  for (std::uint64_t i = 0; i < size; ++i) {
    units.finished.push_back(((bits[i / 8] >> (i % 8)) & 1) != 0);
    units.count += units.finished.back() ? 1 : 0;
  }
  const std::size_t failed = in.Count();
  for (std::size_t i = 0; i < failed && in.ok(); ++i) {
    const std::uint64_t unit = in.U64();
    units.failed[unit] = in.Outcome(version);
    if (!units.Has(unit)) return false;
  }
  return in.ok();
}

void WriteJob(WireWriter& out, const Job& job) {
  out.U64(job.id);
  out.Text(job.submitter);
  out.Text(job.submission_key);
  out.Text(job.kind);
  out.Text(job.name);
  out.Text(job.manifest);
  out.Texts(job.read_prefixes);
  out.Texts(job.write_prefixes);
  out.Text(job.team);
  out.I64(job.priority);
  out.U64(job.world_size);
  out.I64(job.submitted_at);
  out.I64(job.finished_at);
  out.U64(static_cast<std::uint64_t>(Durable(job.state)));
  out.U64(job.finish_order);
  out.U64(job.progress_bytes);
  out.Outcome(job.stream_outcome);
  out.Lease(job.void_leases);
  out.U64(job.last_retry.sender);
  out.U64(job.last_retry.request);
  out.U64(job.last_retry.tasks);
  out.U64(job.detached.size());
  for (const std::uint32_t rank : job.detached) out.U64(rank);
  WriteUnits(out, job.units);
  out.U64(job.on_hold ? 1 : 0);
  out.U64(job.failures.size());
  for (const auto& [index, outcome] : job.failures) {
    out.U64(index);
    out.Outcome(outcome);
  }
  std::uint64_t failed_groups = 0;
  for (const auto& [number, group] : job.groups) failed_groups += group.failed ? 1 : 0;
  out.U64(failed_groups);
  for (const auto& [number, group] : job.groups) {
    if (group.failed) out.U64(number);
  }
  out.U64(job.tasks.size());
  for (const Task& task : job.tasks) WriteTask(out, task);
}

bool ReadTask(WireReader& in, std::uint64_t version, std::uint32_t index, Task& task) {
  task.spec = in.Spec();
  const std::uint64_t state = in.U64();
  if (state > static_cast<std::uint64_t>(TaskState::kQuarantined)) return false;
  task.state = Durable(static_cast<TaskState>(state));
  task.result = in.Text();
  task.result_dropped = in.U64() != 0;
  if (version < 2) return in.ok();
  const std::uint64_t spawner = in.U64();
  if (spawner > index) return false;
  task.spawned_by = spawner == 0 ? kNoTask : static_cast<std::uint32_t>(spawner - 1);
  task.superseded = in.U64() != 0;
  return in.ok() && (!task.superseded || IsEnded(task.state));
}

bool ReadJobHead(WireReader& in, std::uint64_t version, Job& job) {
  job.id = in.U64();
  job.submitter = in.Text();
  job.submission_key = in.Text();
  job.kind = in.Text();
  job.name = in.Text();
  job.manifest = in.Text();
  job.read_prefixes = in.Texts();
  job.write_prefixes = in.Texts();
  if (version >= 5) job.team = in.Text();
  job.priority = static_cast<std::int32_t>(in.I64());
  job.world_size = in.U32();
  job.submitted_at = in.I64();
  job.finished_at = in.I64();
  const std::uint64_t state = in.U64();
  if (state > static_cast<std::uint64_t>(JobState::kCancelled)) return false;
  job.state = static_cast<JobState>(state);
  job.finish_order = in.U64();
  job.progress_bytes = in.U64();
  job.stream_outcome = in.Outcome(version);
  if (version >= 2) {
    job.void_leases = in.Lease();
    job.last_retry.sender = in.U64();
    job.last_retry.request = in.U64();
    job.last_retry.tasks = in.U64();
  }
  const std::size_t detached = in.Count();
  for (std::size_t i = 0; i < detached && in.ok(); ++i) job.detached.insert(in.U32());
  if (version >= 4 && !ReadUnits(in, version, job.units)) return false;
  job.on_hold = version >= 5 && in.U64() != 0;
  const std::size_t failures = in.Count();
  for (std::size_t i = 0; i < failures && in.ok(); ++i) {
    const std::uint32_t index = in.U32();
    job.failures[index] = in.Outcome(version);
  }
  const std::size_t groups = in.Count();
  for (std::size_t i = 0; i < groups && in.ok(); ++i) job.groups[in.U32()].failed = true;
  return in.ok();
}

Status Damaged() { return DataLoss("read journal snapshot: damaged"); }

}  // namespace

std::string JobTable::Encode() const {
  WireWriter out;
  out.U64(kRecordVersion);
  out.U64(incarnation_);
  out.U64(next_job_);
  out.U64(next_finish_);
  out.U64(jobs_.size());
  for (const auto& [id, job] : jobs_) WriteJob(out, job);
  out.U64(known_workers_.size());
  for (const auto& [place, worker] : known_workers_) {
    out.Text(place.first);
    out.U64(place.second);
    out.U64(worker.worker_incarnation);
    out.U64(worker.agent_incarnation);
    out.I64(worker.pid);
    out.Text(worker.host_identity);
  }
  usage_.Encode(out);
  out.U64(drained_nodes_.size());
  for (const auto& [node, drained] : drained_nodes_) {
    out.Text(node);
    out.Text(drained.by);
    out.Text(drained.reason);
  }
  out.U64(node_labels_.size());
  for (const auto& [node, label] : node_labels_) {
    out.Text(node);
    out.Text(label);
  }
  out.Text(teams_.text);
  out.Text(teams_.source);
  out.Text(teams_.by);
  out.I64(teams_.at);
  return out.Take();
}

Status JobTable::Decode(std::string_view bytes) {
  *this = JobTable();
  WireReader in(bytes);
  const std::uint64_t version = in.U64();
  if (in.ok() && version > kRecordVersion) {
    return FailedPrecondition(
        "read journal snapshot: ",
        OtherVersion(version, StrCat("1 to ", kRecordVersion), kTakeItsRelease));
  }
  incarnation_ = in.U32();
  next_job_ = in.U64();
  next_finish_ = in.U64();
  const std::size_t jobs = in.Count();
  for (std::size_t i = 0; i < jobs; ++i) PB_RETURN_IF_ERROR(DecodeJob(in, version));
  const std::size_t workers = in.Count();
  for (std::size_t i = 0; i < workers && in.ok(); ++i) {
    WorkerPlace place;
    place.first = in.Text();
    place.second = in.U32();
    KnownWorker& worker = known_workers_[place];
    worker.worker_incarnation = in.U64();
    worker.agent_incarnation = in.U64();
    worker.pid = in.I64();
    worker.host_identity = in.Text();
  }
  if (version >= 5 && !usage_.Decode(in)) return Damaged();
  const std::size_t drained = version < 5 ? 0 : in.Count();
  for (std::size_t i = 0; i < drained && in.ok(); ++i) {
    const std::string node = in.Text();
    drained_nodes_[node].by = in.Text();
    drained_nodes_[node].reason = in.Text();
  }
  const std::size_t labels = version < 6 ? 0 : in.Count();
  for (std::size_t i = 0; i < labels && in.ok(); ++i) {
    const std::string node = in.Text();
    node_labels_[node] = in.Text();
  }
  if (version >= 5) {
    std::string policy = in.Text();
    if (!policy.empty()) PB_RETURN_IF_ERROR(TakePolicy(std::move(policy)));
    teams_.source = in.Text();
    teams_.by = in.Text();
    teams_.at = in.I64();
  }
  return in.Finished() ? absl::OkStatus() : Damaged();
}

Status JobTable::DecodeJob(WireReader& in, std::uint64_t version) {
  Job head;
  if (!ReadJobHead(in, version, head) || head.id == 0 || head.id >= next_job_) return Damaged();
  if (jobs_.count(head.id) != 0) return Damaged();
  const JobId id = head.id;
  Job& job = jobs_[id] = std::move(head);
  const std::size_t tasks = in.Count();
  for (std::size_t i = 0; i < tasks; ++i) {
    const auto index = static_cast<std::uint32_t>(job.tasks.size());
    if (!ReadTask(in, version, index, job.tasks.emplace_back())) return Damaged();
    for (const std::uint32_t on : job.tasks.back().spec.depends_on) {
      if (on >= i) return Damaged();
    }
  }
  if (job.tasks.empty()) return Damaged();
  RebuildDerived(job);
  by_id_[id] = &job;
  submissions_[{job.submitter, job.submission_key}] = id;
  if (job.finish_order != 0) {
    finished_.insert({job.finish_order, id});
    finished_bytes_ += job.size_bytes;
  } else {
    CountOpened(job);
  }
  return absl::OkStatus();
}

/// Recomputes derived values; keeps whether a group failed.
void JobTable::RebuildDerived(Job& job) {
  Shrink(job, job.size_bytes);
  Grow(job, sizeof(Job) + job.manifest.size());
  for (const auto& [task, outcome] : job.failures) Grow(job, BytesOf(outcome));
  Grow(job, UnitBytes(job.units.finished.size()));
  for (const auto& [unit, outcome] : job.units.failed) Grow(job, BytesOf(outcome));
  job.weight_total = job.weight_done = 0;
  job.tasks_done = job.tasks_failed = job.tasks_cancelled = job.tasks_superseded = 0;
  job.summaries.clear();
  job.summaries_open = 0;
  for (auto& [number, group] : job.groups) group.members.clear();
  for (Task& task : job.tasks) {
    task.consumers.clear();
    task.consumers_open = task.group_children = 0;
    if (task.superseded || task.spawned_by == kNoTask) continue;
    Task& spawner = job.tasks[task.spawned_by];
    spawner.group_children += spawner.spec.group == task.spec.group ? 1 : 0;
  }
  for (std::uint32_t i = 0; i < job.tasks.size(); ++i) AddDerived(job, i);
}

void JobTable::AddDerived(Job& job, std::uint32_t index) {
  const Task& task = job.tasks[index];
  const protocol::TaskSpec& spec = task.spec;
  Grow(job, TaskBytes(spec) + task.result.size());
  TaskGroup& group = job.groups[spec.group];
  if (task.superseded) {
    ++job.tasks_superseded;
    return;
  }
  job.weight_total += spec.weight;
  if (spec.group != 0) group.members.push_back(index);
  if (task.state == TaskState::kDone) {
    ++job.tasks_done;
    job.weight_done += spec.weight;
  } else if (task.state == TaskState::kCancelled) {
    ++job.tasks_cancelled;
  } else if (IsEnded(task.state)) {
    ++job.tasks_failed;
  }
  Link(job, index);
}

}  // namespace patchbay::scheduler
