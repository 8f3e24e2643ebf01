#include "workers/process/local_run.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "runtime/core/printable.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/os/usable_cores.h"
#include "workers/jobs/task_table.h"
#include "workers/process/child_process.h"
#include "workers/process/flags.h"

namespace patchbay::workers {
namespace {

TaskSignals* g_inline_signals = nullptr;  ///< the one thing a signal may reach

void CancelOp(int signal_number) {
  g_inline_signals->cancelled.store(true);
  std::signal(signal_number, SIG_DFL);
}

struct InlineTask {
  std::string op;
  TaskContext context;
};

/// Standard input to its end; a manifest may name more paths than a command line holds.
StatusOr<std::string> ReadInput() {
  std::string text;
  std::vector<char> buffer(64 << 10);
  while (text.size() <= kMaxJsonBytes) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), stdin);
    text.append(buffer.data(), got);
    if (got < buffer.size()) break;
  }
  if (std::ferror(stdin) != 0) return FromErrno("read manifest", "standard input", errno);
  return text;
}

StatusOr<InlineTask> ParseWords(const plan::OpTable& ops, const std::vector<std::string>& words) {
  InlineTask task{.op = {}, .context = {Folders::OfThisUser(), ops}};
  if (words.empty() || words[0].rfind("--", 0) == 0) {
    return InvalidArgument("run: expected the name of an op");
  }
  task.op = words[0];
  PB_ASSIGN_OR_RETURN(const Flags flags,
                      Flags::Parse({words.begin() + 1, words.end()},
                                   {"payload", "manifest", "state", "functions"}));
  PB_ASSIGN_OR_RETURN(task.context.payload, ParseJson(flags.Text("payload", "{}"), "--payload"));
  std::string manifest = flags.Text("manifest", "{}");
  if (manifest == "-") {
    PB_ASSIGN_OR_RETURN(manifest, ReadInput());
  }
  PB_ASSIGN_OR_RETURN(task.context.manifest, ParseJson(manifest, "--manifest"));
  task.context.state_folder = flags.Text("state", "");
  PB_ASSIGN_OR_RETURN(task.context.functions,
                      FunctionPolicy::FromText(flags.Text("functions", "")));
  task.context.rights = PathRights::All();
  task.context.threads = static_cast<int>(UsableCores());
  return task;
}

/// Prints the error for people, and for a program that reads the output.
int Fail(const Status& status, int exit_code) {
  std::printf("%s\n", DumpJson(JsonOf(OutcomeOf(status))).c_str());
  std::fprintf(stderr, "patchbay-worker: %s\n", Printable(MessageOf(status)).c_str());
  return exit_code;
}

Status CheckRunsHere(std::string_view op, const protocol::TaskSpec& spec) {
  if (spec.group == 0 && !spec.after_failures) return absl::OkStatus();
  return FailedPrecondition("run ", op, ": it needs a cluster");
}

/// The tasks of a job, and the outcomes of those that have run.
struct LocalJob {
  std::vector<protocol::TaskSpec> tasks;
  std::vector<std::string> results;

  Status Take(std::string_view op, TaskOutput&& output) {
    const auto first = static_cast<std::uint32_t>(tasks.size());
    for (protocol::TaskSpec& spec : output.spawned) {
      PB_RETURN_IF_ERROR(CheckRunsHere(op, spec));
      for (std::uint32_t& on : spec.depends_on) {
        if (on >= protocol::kSpawnedBase) on = first + (on - protocol::kSpawnedBase);
        if (on >= tasks.size()) return Internal("run ", op, ": a task too early");
      }
      tasks.push_back(std::move(spec));
    }
    results.push_back(std::move(output.result));
    return absl::OkStatus();
  }
};

/// RunTask for the user of this process, who may see paths.
StatusOr<TaskOutput> RunHere(std::string_view op, TaskContext& context) {
  StatusOr<TaskOutput> made = RunTask(op, context);
  if (made.ok()) return made;
  return Named(made.status(), [&](const Subject& each) { return context.subjects.PathOf(each); });
}

}  // namespace

int RunInline(const plan::OpTable& ops, const std::vector<std::string>& words) {
  StatusOr<InlineTask> task = ParseWords(ops, words);
  if (!task.ok()) return Fail(task.status(), kExitCannotStart);
  TaskSignals signals;
  task->context.signals = g_inline_signals = &signals;
  std::signal(SIGTERM, CancelOp);
  std::signal(SIGINT, CancelOp);
  const StatusOr<std::string> result = RunJobHere(task->op, task->context);
  if (!result.ok()) {
    return Fail(result.status(), !HasTask(task->op) ? kExitCannotStart : kExitFailed);
  }
  std::printf("%s\n", result->empty() ? "{}" : result->c_str());
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

StatusOr<std::string> RunJobHere(std::string_view op, TaskContext& root) {
  LocalJob job;
  job.tasks.emplace_back();
  root.task.index = 0;
  PB_ASSIGN_OR_RETURN(TaskOutput made, RunHere(op, root));
  PB_RETURN_IF_ERROR(job.Take(op, std::move(made)));
  for (std::size_t i = 1; i < job.tasks.size(); ++i) {
    TaskContext context = root;
    context.task.index = static_cast<std::uint32_t>(i);
    PB_ASSIGN_OR_RETURN(context.payload, ParseJson(job.tasks[i].payload, "task payload"));
    for (const std::uint32_t on : job.tasks[i].depends_on) {
      context.inputs.push_back(job.results[on]);
    }
    PB_ASSIGN_OR_RETURN(made, RunHere(job.tasks[i].op, context));
    PB_RETURN_IF_ERROR(job.Take(op, std::move(made)));
  }
  return std::move(job.results.back());
}

}  // namespace patchbay::workers
