#include "workers/process/task_runner.h"

#include <optional>
#include <utility>

#include "workers/jobs/task_table.h"
#include "workers/process/planning_crash.h"

namespace patchbay::workers {
namespace {

/// Empty text stands for an empty object.
StatusOr<Json> ParseField(const std::string& text, std::string_view what) {
  if (text.empty()) return Json::object();
  return ParseJson(text, what);
}

StatusOr<TaskOutput> ParseAndRun(const protocol::TaskLease& lease, TaskContext& context) {
  if (lease.planning) PB_RETURN_IF_ERROR(CheckPlans(lease.op));
  PB_ASSIGN_OR_RETURN(context.payload, ParseField(lease.payload, "task payload"));
  PB_ASSIGN_OR_RETURN(context.manifest, ParseField(lease.manifest, "job manifest"));
  return RunTask(lease.op, context);
}

}  // namespace

protocol::TasksFinished::Item RunLeasedTask(const protocol::TaskLease& lease,
                                            TaskContext& context) {
  protocol::TasksFinished::Item item;
  item.lease = lease.lease;
  item.task = lease.task;
  context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
  StatusOr<TaskOutput> output = ParseAndRun(lease, context);
  if (!output.ok()) {
    item.outcome = OutcomeOf(context.WithSubjects(output.status()));
    return item;
  }
  item.result = std::move(output->result);
  item.spawned = std::move(output->spawned);
  item.progress_bytes = output->progress_bytes;
  return item;
}

TaskRunner::TaskRunner(const TaskRunnerOptions& options, TaskEnded ended)
    : options_(options),
      ended_(std::move(ended)),
      queue_(options.tasks_max),
      thread_([this] { Loop(); }) {}

TaskRunner::~TaskRunner() {
  {
    const std::lock_guard lock(jobs_mu_);
    for (auto& [lease, job] : jobs_) job->signals.cancelled.store(true);
  }
  queue_.Close();
  thread_.join();
}

Status TaskRunner::Submit(protocol::TaskLease lease) {
  auto job = std::make_shared<Job>();
  job->lease = std::move(lease);
  const std::lock_guard lock(jobs_mu_);
  const std::string task = job->lease.task.ToString();
  if (jobs_.size() >= options_.tasks_max) {
    return ResourceExhausted("take task: ", task, ": ", jobs_.size(), " are held already");
  }
  if (!jobs_.emplace(job->lease.lease, job).second) {
    return InvalidArgument("take task: ", task, ": its lease is held already");
  }
  PB_CHECK(queue_.TryPush(job));
  return absl::OkStatus();
}

void TaskRunner::Revoke(const LeaseNumber& lease) {
  const std::lock_guard lock(jobs_mu_);
  const auto it = jobs_.find(lease);
  if (it != jobs_.end()) it->second->signals.cancelled.store(true);
}

std::uint64_t TaskRunner::progress() const {
  const std::lock_guard lock(jobs_mu_);
  return running_ == nullptr ? work_done_.load() : running_->signals.progress.load();
}

void TaskRunner::Loop() {
  const std::optional<PlanningThread> mark =
      options_.plans ? std::make_optional<PlanningThread>() : std::nullopt;
  while (std::optional<JobPtr> job = queue_.Pop()) RunOne(*job);
}

void TaskRunner::RunOne(const JobPtr& job) {
  {
    const std::lock_guard lock(jobs_mu_);
    job->signals.progress.store(work_done_.load() + 1);
    running_ = job;
  }
  protocol::TasksFinished::Item item;
  if (!job->signals.cancelled.load()) {
    TaskContext context = ContextOf(*job);
    item = RunLeasedTask(job->lease, context);
  }
  bool revoked = false;
  {
    const std::lock_guard lock(jobs_mu_);
    work_done_.store(job->signals.progress.load() + 1);
    running_ = nullptr;
    jobs_.erase(job->lease.lease);
    revoked = job->signals.cancelled.load();
  }
  if (!revoked) ended_(std::move(item));
}

TaskContext TaskRunner::ContextOf(Job& job) const {
  TaskContext context;
  context.task = job.lease.task;
  context.lease = job.lease.lease;
  context.inputs = std::move(job.lease.inputs);
  context.rights = {job.lease.read_prefixes, job.lease.write_prefixes};
  context.state_folder = options_.state_folder;
  context.threads = options_.threads;
  context.gpu_uuid = options_.gpu_uuid;
  context.signals = &job.signals;
  return context;
}

}  // namespace patchbay::workers
