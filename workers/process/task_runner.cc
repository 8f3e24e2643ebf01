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

protocol::TasksFinished::Item RunLeasedTask(const protocol::TaskLease& lease, TaskContext& context,
                                            const WorkMeter& meter) {
  protocol::TasksFinished::Item item;
  item.lease = lease.lease;
  item.task = lease.task;
  StatusOr<TaskOutput> output = ParseAndRun(lease, context);
  const ThreadSpent spent = meter.Read();
  item.cost = {spent.cpu_ns / 1000, 0, spent.bytes_read, 0};
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
    const std::lock_guard lock(held_mu_);
    for (auto& [lease, task] : held_) task->signals.cancelled.store(true);
  }
  queue_.Close();
  thread_.join();
}

Status TaskRunner::Submit(protocol::TaskLease lease) {
  auto task = std::make_shared<HeldTask>();
  task->lease = std::move(lease);
  const std::lock_guard lock(held_mu_);
  const std::string name = task->lease.task.ToString();
  if (held_.size() >= options_.tasks_max) {
    return ResourceExhausted("take task: ", name, ": ", held_.size(), " are held already");
  }
  if (!held_.emplace(task->lease.lease, task).second) {
    return InvalidArgument("take task: ", name, ": its lease is held already");
  }
  PB_CHECK(queue_.TryPush(task));
  return absl::OkStatus();
}

void TaskRunner::Revoke(const LeaseNumber& lease) {
  const std::lock_guard lock(held_mu_);
  const auto it = held_.find(lease);
  if (it != held_.end()) it->second->signals.cancelled.store(true);
}

std::uint64_t TaskRunner::progress() const {
  const std::lock_guard lock(held_mu_);
  return running_ == nullptr ? work_done_.load() : running_->signals.progress.load();
}

std::int64_t TaskRunner::CpuUsOf(const LeaseNumber& lease) const {
  const std::lock_guard lock(held_mu_);
  if (running_ == nullptr || running_->lease.lease != lease) return 0;
  return meter_->CpuNsSoFar() / 1000;
}

void TaskRunner::Loop() {
  const std::optional<PlanningThread> mark =
      options_.plans ? std::make_optional<PlanningThread>() : std::nullopt;
  while (std::optional<TaskPtr> task = queue_.Pop()) RunOne(*task);
}

void TaskRunner::RunOne(const TaskPtr& task) {
  const WorkMeter meter;
  {
    const std::lock_guard lock(held_mu_);
    task->signals.progress.store(work_done_.load() + 1);
    running_ = task;
    meter_ = &meter;
  }
  protocol::TasksFinished::Item item;
  if (!task->signals.cancelled.load()) {
    TaskContext context = ContextOf(*task);
    item = RunLeasedTask(task->lease, context, meter);
  }
  bool revoked = false;
  {
    const std::lock_guard lock(held_mu_);
    work_done_.store(task->signals.progress.load() + 1);
    running_ = nullptr;
    meter_ = nullptr;
    held_.erase(task->lease.lease);
    revoked = task->signals.cancelled.load();
  }
  if (revoked) {
    item.outcome = OutcomeOf(Cancelled("run task: its lease was revoked"));
    item.result.clear();
    item.spawned.clear();
  }
  if (!revoked || item.cost != protocol::WorkCost{}) ended_(std::move(item));
}

TaskContext TaskRunner::ContextOf(HeldTask& task) const {
  PathRights rights{task.lease.read_prefixes, task.lease.write_prefixes};
  TaskContext context(AllowedFoldersOf(rights, options_.state_folder), *options_.ops);
  context.task = task.lease.task;
  context.lease = task.lease.lease;
  context.inputs = std::move(task.lease.inputs);
  context.rights = std::move(rights);
  context.state_folder = options_.state_folder;
  context.sharing = options_.sharing;
  context.may_take_burned_in = options_.may_take_burned_in;
  context.functions = options_.functions;
  context.threads = options_.threads;
  context.gpu_uuid = options_.gpu_uuid;
  context.signals = &task.signals;
  return context;
}

}  // namespace patchbay::workers
