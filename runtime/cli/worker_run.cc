#include "runtime/cli/worker_run.h"

#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/executable.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/interrupt.h"

namespace patchbay::cli {
namespace {

constexpr int kPollMs = 100;
constexpr int kCannotExecute = 127;

[[noreturn]] void Execute(const std::vector<std::string>& words, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  dup2(output, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(kCannotExecute);
}

/// Everything the child writes; asks it to stop when interrupted.
std::string ReadAll(int fd, pid_t child) {
  std::string text;
  bool asked = false;
  while (text.size() < kMaxJsonBytes) {
    if (Interrupted() && !asked) {
      kill(child, SIGTERM);
      asked = true;
    }
    pollfd wait{fd, POLLIN, 0};
    if (poll(&wait, 1, kPollMs) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

Status OutcomeOf(std::string_view op, int wait_status) {
  if (Interrupted()) return absl::CancelledError(StrCat(op, ": interrupted"));
  if (WIFSIGNALED(wait_status)) {
    return absl::InternalError(
        StrCat(op, ": the worker was ended by signal ", WTERMSIG(wait_status)));
  }
  if (WEXITSTATUS(wait_status) == kCannotExecute) {
    return absl::InternalError(StrCat(op, ": patchbay-worker cannot be executed"));
  }
  if (WEXITSTATUS(wait_status) != 0) return absl::InvalidArgumentError(StrCat(op, " failed"));
  return absl::OkStatus();
}

}  // namespace

StatusOr<Json> RunWorkerOp(std::string_view op, const Json& payload, const Json& manifest) {
  PB_ASSIGN_OR_RETURN(const std::string worker, SiblingBinary("patchbay-worker"));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FromErrno("run worker", "pipe", errno);
  UniqueFd output(ends[0]), inherited(ends[1]);
  const std::vector<std::string> words = {worker,
                                          "run",
                                          std::string(op),
                                          "--payload",
                                          DumpJson(payload),
                                          "--manifest",
                                          DumpJson(manifest)};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FromErrno("run worker", "fork", errno);
  if (child == 0) Execute(words, inherited.get(), parent);
  inherited.Close();
  const std::string text = ReadAll(output.get(), child);
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  PB_RETURN_IF_ERROR(OutcomeOf(op, wait_status));
  return ParseJson(text, StrCat("result of ", op));
}

}  // namespace patchbay::cli
