// A thread that runs batch tasks, one after another. A worker has two: one plans streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/os/work_meter.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/jobs/task/task.h"
#include "workers/stream/bounded_queue.h"

namespace patchbay::workers {

struct TaskRunnerOptions {
  const plan::OpTable* ops = nullptr;  ///< TaskContext::ops; never null, outlives the runner
  std::string state_folder;            ///< TaskContext::state_folder of every task
  int threads = 1;                     ///< TaskContext::threads
  std::string gpu_uuid;                ///< TaskContext::gpu_uuid
  std::size_t tasks_max = 8192;        ///< leases held at once; a grant beyond is refused
  /// The thread plans and does nothing else: ops that plan nothing are refused, and its crash is
  /// told from one of the others (NamePlanningCrashes).
  bool plans = false;
  std::optional<FileSharing> sharing;  ///< TaskContext::sharing
  bool may_take_burned_in = false;     ///< TaskContext::may_take_burned_in
  FunctionPolicy functions = {};       ///< TaskContext::functions
};

/// Receives the outcome of a task: Cancelled, and not called unless it had begun, for one whose
/// lease was revoked.
using TaskEnded = std::function<void(protocol::TasksFinished::Item item)>;

/// Runs tasks in the order they came. Submit, Revoke and progress are thread-safe.
class TaskRunner {
 public:
  /// `ended` is called from the runner's thread and must not block.
  TaskRunner(const TaskRunnerOptions& options, TaskEnded ended);
  /// Cancels everything and joins the thread: waits for the task that runs.
  ~TaskRunner();

  /// ResourceExhausted when too many are held, InvalidArgument for a lease that is held already.
  Status Submit(protocol::TaskLease lease);
  /// Drops the task, or asks it to stop. Its outcome is not reported. Unknown leases are ignored.
  void Revoke(const LeaseNumber& lease);
  /// Rises while the running task works. Every held lease is renewed with it, since the tasks
  /// behind wait for the running one.
  std::uint64_t progress() const;
  /// Processor time that the task has taken so far; 0 unless it runs.
  std::int64_t CpuUsOf(const LeaseNumber& lease) const;

 private:
  struct HeldTask {
    protocol::TaskLease lease;
    TaskSignals signals;
  };
  using TaskPtr = std::shared_ptr<HeldTask>;

  void Loop();
  void RunOne(const TaskPtr& task);
  TaskContext ContextOf(HeldTask& task) const;

  const TaskRunnerOptions options_;
  const TaskEnded ended_;
  BoundedQueue<TaskPtr> queue_;
  std::atomic<std::uint64_t> work_done_{0};  ///< progress of all tasks that ended
  mutable std::mutex held_mu_;
  std::map<LeaseNumber, TaskPtr> held_;  // guarded by held_mu_
  TaskPtr running_;                      // guarded by held_mu_
  const WorkMeter* meter_ = nullptr;     // guarded by held_mu_
  std::thread thread_;
};

/// Runs a leased task here and now, confined to the folders of its rights; the outcome as a worker
/// reports it. `meter`: made by this thread for this task.
protocol::TasksFinished::Item RunLeasedTask(const protocol::TaskLease& lease, TaskContext& context,
                                            const WorkMeter& meter);

}  // namespace patchbay::workers
