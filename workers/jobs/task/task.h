// A task from the view of the code that does the work: its lease's input, and its output.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_table.h"
#include "runtime/os/file_sharing.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/access/path_rights.h"
#include "workers/access/subject_table.h"
#include "workers/functions/function_policy.h"  // wide: all that a task is given

namespace patchbay::workers {

/// The output of a task. The result is at most protocol::kMaxInlineResultBytes; a larger one is
/// written to a file and named by its hash (see staged_job.h).
struct TaskOutput {
  std::string result;                       ///< JSON, defined by the op
  std::vector<protocol::TaskSpec> spawned;  ///< appended to the job when this task commits
  std::uint64_t progress_bytes = 0;         ///< work done, for rates
};

/// Counters the task's thread writes and the session reads, about every second.
struct TaskSignals {
  std::atomic<std::uint64_t> progress{0};  ///< must move while the task works, or its lease ends
  std::atomic<bool> cancelled{false};  ///< the lease was revoked: stop soon, the outcome is void
};

/// One task while it runs. Belongs to the thread that runs it; valid until the function returns.
struct TaskContext {
  TaskContext(Folders folders, const plan::OpTable& table)
      : allowed(std::move(folders)), ops(table) {}

  TaskId task;
  LeaseNumber lease;
  Json payload;
  std::vector<std::string> inputs;  ///< results of depends_on, in order
  Json manifest;                    ///< paths: never logged, never in a result that others see
  PathRights rights;
  Folders allowed;           ///< folders of `rights`, for every function that opens files
  const plan::OpTable& ops;  ///< ops that plans may name
  /// Subjects by path, for the task's error. Paths of the manifest need no entry; an op adds the
  /// paths that it finds itself.
  SubjectTable subjects;
  std::string state_folder;  ///< this node's private folder (digest cache); empty: keep nothing
  int threads = 1;           ///< threads the task may use
  std::string gpu_uuid;      ///< UUID of the worker's GPU; empty without one
  TaskSignals* signals = nullptr;      ///< never null while the task runs
  std::optional<FileSharing> sharing;  ///< rights of the files that it publishes
  bool may_take_burned_in = false;     ///< the node's site allows the repair of that name
  FunctionPolicy functions = {};       ///< own functions of users that this worker runs

  /// Shows the scheduler that work continues: call at least every second of work.
  void AddProgress(std::uint64_t steps = 1) {
    signals->progress.fetch_add(steps, std::memory_order_relaxed);
  }
  /// Cancelled once the lease was revoked: return it at the next convenient point.
  Status CheckCancelled() const {
    if (!signals->cancelled.load(std::memory_order_relaxed)) return absl::OkStatus();
    return Cancelled("task ", task.ToString(), ": its lease was revoked");
  }
  /// An error of the task as it may travel: subjects by number, no path.
  Status WithSubjects(const Status& status) const {
    SubjectTable all = subjects;
    all.AddManifest(manifest);
    return all.Settle(status);
  }
  StatusOr<std::string> MayRead(const std::string& path) const {
    return PathAllowed(rights, Access::kRead, path);
  }
  StatusOr<std::string> MayWrite(const std::string& path) const {
    return PathAllowed(rights, Access::kWrite, path);
  }
};

/// One step of progress; Cancelled once the lease was revoked.
inline Status StepOf(TaskContext& context) {
  context.AddProgress();
  return context.CheckCancelled();
}

/// StepOf as a callback, valid while the context lives.
inline std::function<Status()> ProgressOf(TaskContext& context) {
  return [&context] { return StepOf(context); };
}

/// Does one task. Deterministic in payload, inputs and manifest: it may run twice, even at the same
/// time on two nodes, and the second run must not damage the committed results of the first.
using TaskFunction = StatusOr<TaskOutput> (*)(TaskContext& context);

}  // namespace patchbay::workers
