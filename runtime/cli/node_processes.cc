#include "runtime/cli/node_processes.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/executable.h"
#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr long kReadyTimeoutMs = 60'000;
constexpr int kPollMs = 50;
constexpr long kBuryMs = 5'000;  ///< what a supervisor may take to kill and bury what is left
constexpr std::size_t kMaxReadyBytes = 64 << 10;
constexpr int kCannotExecute = 127;
constexpr int kEndedUnseen = 1;

StatusOr<std::vector<std::string>> SupervisorCommand(const NodeSettings& settings, int ready_fd) {
  PB_ASSIGN_OR_RETURN(const std::string supervisor, SiblingBinary("patchbay-supervisor"));
  PB_ASSIGN_OR_RETURN(const std::string agent, SiblingBinary("patchbay-agent"));
  std::vector<std::string> words = {supervisor, "--ready-fd", std::to_string(ready_fd), "--stop-ms",
                                    std::to_string(settings.stop_ms)};
  const auto add = [&words](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (settings.scheduler.has_value()) {
    const SchedulerSettings& scheduler = *settings.scheduler;
    PB_ASSIGN_OR_RETURN(const std::string program, SiblingBinary("patchbay-scheduler"));
    add({"--child", "scheduler", program, "--home", scheduler.home, "--state", scheduler.state,
         "--listen", scheduler.listen});
    if (scheduler.allow_public) add({"--allow-public"});
  }
  add({"--child", "agent", agent, "--key", settings.node_key, "--cpus",
       std::to_string(settings.cpus), "--gpus", settings.gpus, "--state", settings.state});
  if (settings.network.policy != data::NetworkPolicy::kNone) {
    add({"--data-policy", std::string(NameOf(settings.network.policy)), "--data-address",
         settings.network.address});
  }
  return words;
}

/// In the child: never returns.
[[noreturn]] void Execute(const NodeSettings& settings, const std::vector<std::string>& words,
                          pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  setsid();  // Ctrl-C on the terminal reaches only the command
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout belongs to the command's result
  if (!settings.log_file.empty()) {
    const int log = open(settings.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(kCannotExecute);
}

/// What the supervisor has said so far.
struct ReadyText {
  std::string text;
  bool ended = false;

  void ReadFrom(int fd, int wait_ms) {
    pollfd wait{fd, POLLIN, 0};
    if (poll(&wait, 1, wait_ms) <= 0) return;
    char buffer[1024];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    if (got == 0 || text.size() > kMaxReadyBytes) ended = true;
  }
  /// The rest of the line that begins with `start`, or nothing.
  std::optional<std::string> Line(std::string_view start) const {
    std::size_t at = 0;
    for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = text.substr(at, end - at);
      if (line.compare(0, start.size(), start) == 0) return line.substr(start.size());
    }
    return std::nullopt;
  }
};

Status WaitUntilReady(int fd, const std::function<bool()>& keep_waiting, ReadyText& said) {
  const TimeMs deadline = SteadyClock().NowMs() + kReadyTimeoutMs;
  while (true) {
    said.ReadFrom(fd, kPollMs);
    if (said.Line("ready").has_value()) return absl::OkStatus();
    if (const auto failed = said.Line("failed ")) {
      return absl::UnavailableError(StrCat("start cluster: ", *failed));
    }
    if (said.ended) return absl::UnavailableError("start cluster: the supervisor ended");
    if (!keep_waiting()) return absl::CancelledError("start cluster: interrupted");
    if (SteadyClock().NowMs() > deadline) {
      return absl::DeadlineExceededError(
          StrCat("start cluster: not ready after ", kReadyTimeoutMs / 1000, " s"));
    }
  }
}

}  // namespace

StatusOr<NodeProcesses> NodeProcesses::Start(const NodeSettings& settings,
                                             const std::function<bool()>& keep_waiting) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FromErrno("start cluster", "pipe", errno);
  UniqueFd ready(ends[0]), inherited(ends[1]);
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                      SupervisorCommand(settings, inherited.get()));
  const pid_t parent = getpid();
  NodeProcesses node;
  node.pid_ = fork();
  if (node.pid_ < 0) return FromErrno("start cluster", "fork", errno);
  if (node.pid_ == 0) {
    fcntl(inherited.get(), F_SETFD, 0);
    Execute(settings, words, parent);
  }
  inherited.Close();
  ReadyText said;
  PB_RETURN_IF_ERROR(WaitUntilReady(ready.get(), keep_waiting, said));
  node.address_ = said.Line("scheduler ready ").value_or("");
  return node;
}

NodeProcesses::NodeProcesses(NodeProcesses&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), address_(std::move(other.address_)) {}

NodeProcesses::~NodeProcesses() { Stop(0); }

std::optional<int> NodeProcesses::PollExit() {
  if (pid_ < 0) return kEndedUnseen;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedUnseen;
}

void NodeProcesses::AskToStop() {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

void NodeProcesses::Stop(long kill_after_ms) {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  const TimeMs deadline = SteadyClock().NowMs() + kill_after_ms;
  while (!PollExit().has_value()) {
    // A second SIGTERM makes the supervisor kill what is left, bury it and end.
    const TimeMs late = SteadyClock().NowMs() - deadline;
    if (late >= 0) kill(pid_, SIGTERM);
    // Frozen. All of its processes die with it, or with one that does.
    if (late >= kBuryMs) kill(pid_, SIGKILL);
    poll(nullptr, 0, kPollMs);
  }
}

}  // namespace patchbay::cli
