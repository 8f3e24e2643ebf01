#include "runtime/cli/worker_run.h"

#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/interrupt.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/os/executable.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr int kPollMs = 100;
constexpr int kCannotExecute = 127;

/// The two ends of a pipe, both closed when a program is executed.
struct Pipe {
  UniqueFd read_end, write_end;

  static StatusOr<Pipe> Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return FromErrno("run worker", "pipe", errno);
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
};

/// Output of the child.
struct Written {
  std::string output, errors;
};

/// A file without a name with this text, to be read from its beginning.
StatusOr<UniqueFd> FileOf(const std::string& text) {
  UniqueFd file(memfd_create("patchbay-manifest", MFD_CLOEXEC));
  if (!file.valid()) return FromErrno("run worker", "manifest", errno);
  PB_RETURN_IF_ERROR(WriteAt(file.get(), 0, AsBytes(text), "manifest"));
  return file;
}

[[noreturn]] void Execute(const std::vector<std::string>& words, const UniqueFd& input,
                          const Pipe& output, const Pipe& errors) {
  dup2(input.get(), STDIN_FILENO);
  dup2(output.write_end.get(), STDOUT_FILENO);
  dup2(errors.write_end.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(kCannotExecute);
}

/// Appends available bytes to `text`. False at the end, or when `text` exceeds the limit of a
/// result.
bool ReadSome(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  return got > 0 && text.size() < kMaxJsonBytes;
}

/// Everything the child writes; asks it to stop when interrupted.
Written ReadAll(const Pipe& output, const Pipe& errors, pid_t child) {
  Written written;
  bool asked = false;
  pollfd waits[2] = {{output.read_end.get(), POLLIN, 0}, {errors.read_end.get(), POLLIN, 0}};
  std::string* const texts[2] = {&written.output, &written.errors};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    if (Interrupted() && !asked) {
      kill(child, SIGTERM);
      asked = true;
    }
    if (poll(waits, 2, kPollMs) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (waits[i].revents != 0 && !ReadSome(waits[i].fd, *texts[i])) waits[i].fd = -1;
    }
  }
  return written;
}

/// The last line that the worker wrote.
std::string Reason(const std::string& errors) {
  std::string text = errors;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  if (line != std::string::npos) text = text.substr(line + 1);
  return text;
}

/// The error that the worker writes in place of a result; of code 0 where it wrote none.
Outcome ErrorIn(const Written& written) {
  const StatusOr<Json> json = ParseJson(written.output, "error of the worker");
  const StatusOr<Outcome> outcome = json.ok() ? FromJson<Outcome>(*json, "outcome") : json.status();
  return outcome.ok() ? *outcome : Outcome{};
}

Status HowItEnded(std::string_view op, int wait_status, const Written& written) {
  if (Interrupted()) return Cancelled(op, ": interrupted");
  if (WIFSIGNALED(wait_status)) {
    return Internal(op, ": the worker was ended by signal ", WTERMSIG(wait_status));
  }
  if (WEXITSTATUS(wait_status) == kCannotExecute) {
    return Internal(op, ": patchbay-worker cannot be executed");
  }
  if (WEXITSTATUS(wait_status) != 0) {
    Outcome error = ErrorIn(written);
    if (error.code != 0) {
      error.code = static_cast<std::int32_t>(absl::StatusCode::kInvalidArgument);
      return StatusOf(error);
    }
    const std::string reason = Reason(written.errors);
    return InvalidArgument(reason.empty() ? StrCat(op, ": failed") : reason);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Json> RunWorkerOp(std::string_view op, const Json& payload, const Json& manifest) {
  return RunWorkerOp(op, payload, manifest, "");
}

StatusOr<Json> RunWorkerOp(std::string_view op, const Json& payload, const Json& manifest,
                           const std::string& functions) {
  PB_ASSIGN_OR_RETURN(const std::string worker, SiblingBinary("patchbay-worker"));
  PB_ASSIGN_OR_RETURN(Pipe output, Pipe::Open());
  PB_ASSIGN_OR_RETURN(Pipe errors, Pipe::Open());
  // On its standard input: one word of a command line holds 128 KiB, some 1,000 paths.
  PB_ASSIGN_OR_RETURN(const UniqueFd input, FileOf(DumpJson(manifest)));
  std::vector<std::string> words = {
      worker, "run", std::string(op), "--payload", DumpJson(payload), "--manifest", "-"};
  if (!functions.empty()) words.insert(words.end(), {"--functions", functions});
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return FromErrno("run worker", "fork", errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kCannotExecute);
    Execute(words, input, output, errors);
  }
  output.write_end.Close();
  errors.write_end.Close();
  const Written written = ReadAll(output, errors, child);
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  PB_RETURN_IF_ERROR(HowItEnded(op, wait_status, written));
  return ParseJson(written.output, StrCat("result of ", op));
}

}  // namespace patchbay::cli
