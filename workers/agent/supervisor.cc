#include "workers/agent/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/agent/service_notice.h"
#include "workers/process/heartbeat_watch.h"

namespace patchbay::workers {
namespace {

constexpr int kProgramStartsMax = 5;    ///< crashes before the first "ready"
constexpr std::size_t kLineMax = 4096;  ///< bytes kept of a program's line
constexpr std::string_view kFailed = "failed ";
constexpr long kNotifyEveryMs = 1'000;
constexpr std::string_view kServing = "READY=1\nWATCHDOG=1";
constexpr std::string_view kStopping = "STOPPING=1\nEXTEND_TIMEOUT_USEC=5000000";
constexpr long kReapAfterKillMs = 5'000;  ///< for the kernel to end killed processes

long NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// One program and the process that runs it now.
struct Child {
  const SupervisedProgram* program = nullptr;
  pid_t pid = 0;           ///< 0: not running
  int pipe = -1;           ///< read end: its lines
  std::string line;        ///< the line read so far
  std::string why;         ///< reason that the program gave before it gave up
  bool was_ready = false;  ///< once, in any life
  int failed_starts = 0;
  long started_ms = 0;
  long restart_at_ms = 0;  ///< when pid is 0
  RestartDelay delay;
  HeartbeatWatch heartbeats;
};

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options) : options_(options) {
    for (const SupervisedProgram& program : options.programs) {
      children_.emplace_back().program = &program;
    }
  }

  int Run() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    sigset_t watched;
    sigemptyset(&watched);
    for (int s : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&watched, s);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0) return kExitFailed;
    while (!stopping_) {
      StartDue();
      if (!stopping_) WaitForEvent(NextTimeoutMs());
    }
    StopAll();
    const bool by_signal = parent_stops_ + other_stops_ > 0;
    return by_signal && exit_code_ == kExitDone ? kExitStopped : exit_code_;
  }

 private:
  /// Starts the first program that is not running and is due. One at a time until all were ready
  /// once, since a program may need the one before it.
  void StartDue() {
    for (Child& child : children_) {
      if (child.pid == 0 && NowMs() >= child.restart_at_ms) Start(child);
      if (!child.was_ready || stopping_) return;
    }
  }

  void Start(Child& child) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      return Fail(child, "no pipe: too many open files");
    ChildOptions start;
    start.arguments = child.program->arguments;
    start.arguments.push_back("--ready-fd");
    start.arguments.push_back(std::to_string(ends[1]));
    start.inherit_fd = ends[1];
    start.own_group = true;
    const pid_t pid = StartChild(start);
    close(ends[1]);
    if (pid < 0) {
      close(ends[0]);
      child.restart_at_ms = NowMs() + child.delay.Next(0);
      if (!child.was_ready && ++child.failed_starts >= kProgramStartsMax) Fail(child, "no process");
      return;
    }
    child.pipe = ends[0];
    child.line.clear();
    child.why.clear();
    child.pid = pid;
    child.started_ms = NowMs();
    child.heartbeats.Start(child.started_ms);
  }

  int NextTimeoutMs() const {
    long timeout = options_.notify.empty() ? 60'000 : kNotifyEveryMs;
    for (const Child& child : children_) {
      timeout = std::min(
          timeout, child.pid == 0 ? child.restart_at_ms - NowMs() : HeartbeatWatch::kLookEveryMs);
    }
    return static_cast<int>(std::max(timeout, 1L));
  }

  void WaitForEvent(int timeout_ms) {
    std::vector<pollfd> waits{{signal_fd_, POLLIN, 0}};
    for (const Child& child : children_) {
      if (child.pipe >= 0) waits.push_back({child.pipe, POLLIN, 0});
    }
    poll(waits.data(), waits.size(), timeout_ms);
    signalfd_siginfo seen{};
    while (read(signal_fd_, &seen, sizeof(seen)) == sizeof(seen)) {
      if (seen.ssi_signo == SIGCHLD) continue;
      ++(static_cast<pid_t>(seen.ssi_pid) == getppid() ? parent_stops_ : other_stops_);
      stopping_ = true;
    }
    for (Child& child : children_) {
      if (child.pipe >= 0) ReadLines(child);
    }
    Reap();
    KillLost();
    Notify();
  }

  void Notify() {
    const std::string_view state = stopping_ ? kStopping : AllWereReady() ? kServing : "";
    if (state.empty() || (state == notified_ && NowMs() < notify_at_ms_)) return;
    NotifyService(options_.notify, state);
    notified_ = state;
    notify_at_ms_ = NowMs() + kNotifyEveryMs;
  }

  bool AllWereReady() const {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.was_ready; });
  }

  /// Reads the child's lines: "ready ...", an empty line for each heartbeat, "failed ..." before it
  /// gives up.
  void ReadLines(Child& child) {
    char buffer[256];
    ssize_t got = 0;
    while ((got = read(child.pipe, buffer, sizeof(buffer))) > 0) {
      for (const char c : std::string_view(buffer, static_cast<std::size_t>(got))) {
        if (c != '\n') {
          if (child.line.size() < kLineMax) child.line += c;
          continue;
        }
        child.line.empty() ? child.heartbeats.Beat(NowMs()) : OnLine(child);
        child.line.clear();
      }
    }
    if (got == 0) ClosePipe(child);
  }

  void OnLine(Child& child) {
    if (child.line.compare(0, kFailed.size(), kFailed) == 0) {
      child.why = child.line.substr(kFailed.size());
      return;
    }
    if (child.line.compare(0, 5, "ready") != 0 || child.was_ready) return;
    child.was_ready = true;
    Tell(child.program->name + " " + child.line + "\n");
    if (AllWereReady()) Tell("ready\n");
  }

  static void ClosePipe(Child& child) {
    close(child.pipe);
    child.pipe = -1;
  }

  void KillLost() {
    for (Child& child : children_) {
      // Without its pipe it is ending.
      if (child.pid == 0 || child.pipe < 0 || !child.heartbeats.Lost(child.pid, NowMs())) continue;
      std::fprintf(stderr, "supervisor: %s does not respond, killing it\n",
                   child.program->name.c_str());
      kill(child.pid, SIGKILL);
    }
  }

  void Reap() {
    int wait_status = 0;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
      for (Child& child : children_) {
        if (child.pid == pid) OnExit(child, wait_status);
      }
    }
  }

  void OnExit(Child& child, int wait_status) {
    if (child.pipe >= 0) ReadLines(child);
    if (child.pipe >= 0) ClosePipe(child);  // a descendant has it still
    child.pid = 0;
    if (stopping_) return;
    const bool exited = WIFEXITED(wait_status);
    const int code = exited ? WEXITSTATUS(wait_status) : -1;
    if (code == kExitDone || code == kExitStopped || WasToldToStop(wait_status)) {
      if (code != kExitDone) exit_code_ = kExitStopped;
      stopping_ = true;
      return;
    }
    if (code == kExitGivenUp) {
      exit_code_ = kExitCannotStart;
      return Fail(child, child.why.empty() ? "it has given up" : child.why);
    }
    if (!child.was_ready &&
        (code == kExitCannotStart || ++child.failed_starts >= kProgramStartsMax)) {
      exit_code_ = code == kExitCannotStart ? kExitCannotStart : kExitFailed;
      return Fail(child, DescribeWaitStatus(wait_status));
    }
    const long delay_ms = child.delay.Next(NowMs() - child.started_ms);
    child.restart_at_ms = NowMs() + delay_ms;
    std::fprintf(stderr, "supervisor: %s ended with %s, starting it again in %ld ms\n",
                 child.program->name.c_str(), DescribeWaitStatus(wait_status).c_str(), delay_ms);
  }

  /// Before it could take the signal as an order: it had only just started.
  static bool WasToldToStop(int wait_status) {
    return WIFSIGNALED(wait_status) &&
           (WTERMSIG(wait_status) == SIGTERM || WTERMSIG(wait_status) == SIGINT);
  }

  void Fail(const Child& child, const std::string& why) {
    std::fprintf(stderr, "supervisor: %s cannot start: %s\n", child.program->name.c_str(),
                 why.c_str());
    Tell("failed " + child.program->name + ": " + why + "\n");
    if (exit_code_ == kExitDone) exit_code_ = kExitFailed;
    stopping_ = true;
  }

  void Tell(const std::string& line) {
    if (options_.ready_fd < 0) return;
    if (write(options_.ready_fd, line.data(), line.size()) < 0) return;
  }

  /// One stop arrives twice when a signal reaches all processes and the parent also passes it on;
  /// only a second one of the same kind is a new stop.
  bool MustHurry() const { return parent_stops_ > 1 || other_stops_ > 1; }

  /// Stops the children in reverse order of their start: the agent drains while its scheduler still
  /// listens, which has notice of the stop from its begin.
  void StopAll() {
    const long deadline_ms = NowMs() + options_.stop_ms;
    for (const Child& child : children_) {
      const bool waits = &child != &children_.back();
      if (waits && child.pid > 0 && child.was_ready) kill(child.pid, kStopComes);
    }
    for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
      if (child->pid > 0) kill(child->pid, SIGTERM);
      while (child->pid > 0 && NowMs() < deadline_ms && !MustHurry()) {
        WaitForEvent(
            static_cast<int>(std::clamp(deadline_ms - NowMs(), 1L, HeartbeatWatch::kLookEveryMs)));
      }
    }
    for (const Child& child : children_) {
      if (child.pid > 0) kill(child.pid, SIGKILL);
    }
    const long reap_until_ms = NowMs() + kReapAfterKillMs;
    while (!NothingLeft() && NowMs() < reap_until_ms) WaitForEvent(100);
  }

  /// Reaps, and returns whether neither children nor adopted grandchildren are left.
  bool NothingLeft() {
    Reap();
    return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
  }

  const SupervisorOptions& options_;
  std::vector<Child> children_;
  int signal_fd_ = -1;
  int parent_stops_ = 0, other_stops_ = 0;
  bool stopping_ = false;
  int exit_code_ = kExitDone;
  std::string_view notified_;  ///< the last state that the service manager was told
  long notify_at_ms_ = 0;      ///< when it is told again
};

bool ParseNumber(const std::string& text, long& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

}  // namespace

int RunSupervisor(const SupervisorOptions& options) { return Supervisor(options).Run(); }

bool ParseSupervisorArguments(const std::vector<std::string>& arguments, SupervisorOptions& options,
                              std::string& error) {
  std::size_t i = 0;
  for (; i + 1 < arguments.size() && arguments[i] != "--child"; i += 2) {
    long value = 0;
    if (arguments[i] != "--ready-fd" && arguments[i] != "--stop-ms") {
      error = "unknown flag '" + arguments[i] + "'";
      return false;
    }
    if (!ParseNumber(arguments[i + 1], value)) {
      error = arguments[i] + ": expected a number, not '" + arguments[i + 1] + "'";
      return false;
    }
    if (arguments[i] == "--ready-fd") options.ready_fd = static_cast<int>(value);
    if (arguments[i] == "--stop-ms") options.stop_ms = value;
  }
  for (; i < arguments.size(); ++i) {
    if (arguments[i] == "--child") {
      options.programs.emplace_back();
    } else if (options.programs.empty()) {
      error = "unexpected '" + arguments[i] + "'";
      return false;
    } else if (options.programs.back().name.empty()) {
      options.programs.back().name = arguments[i];
    } else {
      options.programs.back().arguments.push_back(arguments[i]);
    }
  }
  for (const SupervisedProgram& program : options.programs) {
    if (program.arguments.empty()) error = "--child needs a name and a program";
  }
  if (options.programs.empty()) error = "no --child";
  return error.empty();
}

}  // namespace patchbay::workers
