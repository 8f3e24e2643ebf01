#include "runtime/cli/cluster/node_command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/cluster.h"
#include "runtime/client/network.h"
#include "runtime/client/site_file.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/usable_cores.h"

namespace patchbay::cli {
namespace {

constexpr long kReadyTimeoutMs = 60'000;
constexpr int kPollMs = 50;
constexpr std::int64_t kUsualGraceS = 20, kMaxGraceS = 3'600;
constexpr long kReapMs = 5'000;  ///< time for a supervisor to kill and reap the rest
constexpr int kCannotExecute = 127;
constexpr int kEndedUnseen = 1;
constexpr int kStoppedLooksMax = 100;  ///< 10 s; an engine that suspends a job stops us too

/// In the child: never returns.
[[noreturn]] void Execute(const std::vector<std::string>& words, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  setsid();  // Ctrl-C on the terminal reaches only the command
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout belongs to the command's result
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(kCannotExecute);
}

/// Reads lines that arrive within `wait_ms`; false once the other end is closed.
bool ReadFrom(int fd, int wait_ms, client::ReadyLines& said) {
  pollfd wait{fd, POLLIN, 0};
  if (poll(&wait, 1, wait_ms) <= 0) return true;
  char buffer[1024];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) said.Append({buffer, static_cast<std::size_t>(got)});
  return got != 0;
}

Status WaitUntilReady(int fd, const std::function<bool()>& keep_waiting, client::ReadyLines& said) {
  const TimeMs deadline = SteadyClock().NowMs() + kReadyTimeoutMs;
  while (true) {
    const bool open = ReadFrom(fd, kPollMs, said);
    if (said.Line("ready").has_value()) return absl::OkStatus();
    if (const auto failed = said.Line("failed ")) return Unavailable("start cluster: ", *failed);
    if (!open || said.TooLong()) return Unavailable("start cluster: the supervisor ended");
    if (!keep_waiting()) return Cancelled("start cluster: interrupted");
    if (SteadyClock().NowMs() > deadline) {
      return DeadlineExceeded("start cluster: not ready after ", kReadyTimeoutMs / 1000, " s");
    }
  }
}

constexpr long kExitLookMs = 100;
constexpr std::uint64_t kWorkerNeedsBytes = 256ull << 20;  ///< to start, and for one small image

/// "64G", "512MiB".
StatusOr<std::uint64_t> ParseMemory(const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.ends_with("iB")) unit.remove_suffix(2);
  const std::size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  const std::size_t shift = 10 * (power + 1);
  if (error != std::errc() || power == std::string_view::npos || value == 0 ||
      value > std::uint64_t{std::numeric_limits<std::int64_t>::max()} >> shift) {
    return UsageError(StrCat("--memory: expected a size such as 64G or 512M, not '", text, "'"));
  }
  return value << shift;
}

/// The most that the control group around this process allows, less a tenth for the other programs;
/// 0 = no limit, without a group's limit or with one that leaves each worker too little.
std::uint64_t GroupMemory(std::uint64_t workers) {
  const MemoryBudget budget = MemoryLimit();
  const bool is_of_group = budget.limit.starts_with('/');  // the group's file
  const std::uint64_t bytes = budget.bytes / 100 * kMemoryUsePercent;
  return is_of_group && bytes / workers >= kWorkerNeedsBytes ? bytes : 0;
}

StatusOr<std::uint64_t> MemoryFor(const std::string& text, std::int64_t cpus) {
  const std::uint64_t workers = static_cast<std::uint64_t>(std::max<std::int64_t>(cpus, 1));
  if (text.empty()) return GroupMemory(workers);
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, ParseMemory(text));
  if (bytes / workers >= kWorkerNeedsBytes) return bytes;
  return UsageError(StrCat("--memory: ", HumanBytes(bytes), " for ", Counted(workers, "worker"),
                           ": each needs ", HumanBytes(kWorkerNeedsBytes),
                           ": give more, or fewer --cpus"));
}

}  // namespace

StatusOr<NodeProcesses> NodeProcesses::Start(const NodeSettings& settings,
                                             const std::function<bool()>& keep_waiting) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FromErrno("start cluster", "pipe", errno);
  UniqueFd ready(ends[0]), inherited(ends[1]);
  PB_ASSIGN_OR_RETURN(std::vector<std::string> words, client::SupervisorCommand(settings));
  words.insert(words.begin() + 1, {"--ready-fd", std::to_string(inherited.get())});
  const pid_t parent = getpid();
  NodeProcesses node;
  node.pid_ = fork();
  if (node.pid_ < 0) return FromErrno("start cluster", "fork", errno);
  if (node.pid_ == 0) {
    fcntl(inherited.get(), F_SETFD, 0);
    Execute(words, parent);
  }
  inherited.Close();
  client::ReadyLines said;
  const Status waited = WaitUntilReady(ready.get(), keep_waiting, said);
  if (absl::IsUnavailable(waited)) {  // it is ending, or has ended
    const TimeMs deadline = SteadyClock().NowMs() + kReapMs;
    std::optional<int> exit;
    while (!(exit = node.PollExit()) && SteadyClock().NowMs() < deadline) PauseMs(kPollMs);
    if (exit == static_cast<int>(ExitCode::kStopped)) {
      return absl::AbortedError("start cluster: a signal stopped its processes");
    }
  }
  PB_RETURN_IF_ERROR(waited);
  node.address_ = said.Line("scheduler ready ").value_or("");
  return node;
}

NodeProcesses::NodeProcesses(NodeProcesses&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      address_(std::move(other.address_)),
      stopped_looks_(other.stopped_looks_) {}

NodeProcesses::~NodeProcesses() { Stop(0); }

std::optional<int> NodeProcesses::PollExit() {
  if (pid_ < 0) return kEndedUnseen;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid_) {
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      stopped_looks_ = WIFSTOPPED(status) ? 1 : 0;
      continue;
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kEndedUnseen;
  }
  if (stopped_looks_ > 0 && ++stopped_looks_ > kStoppedLooksMax) kill(pid_, SIGKILL);
  return std::nullopt;
}

void NodeProcesses::Stop(long kill_after_ms) {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  const TimeMs deadline = SteadyClock().NowMs() + kill_after_ms;
  while (!PollExit().has_value()) {
    // A second SIGTERM makes the supervisor kill and reap remaining processes, and end.
    const TimeMs late = SteadyClock().NowMs() - deadline;
    if (late >= 0) kill(pid_, SIGTERM);
    // Frozen. All of its processes die with it, or with one that does.
    if (late >= kReapMs) kill(pid_, SIGKILL);
    poll(nullptr, 0, kPollMs);
  }
}

std::vector<Argument> NodeArguments::Arguments() {
  Argument count{"--cpus", "N", "CPU workers (default: cores)", &cpus};
  count.min = 0;
  count.max = client::kMaxCpuWorkers;
  Argument grace{"--grace", "S",
                 "seconds for an orderly stop, then processes are killed (default 20)", &grace_s};
  grace.min = 1;
  grace.max = kMaxGraceS;
  return {count,
          {"--gpus", "LIST", "auto (the engine's, else all), none, or UUIDs (default auto)", &gpus},
          {"--memory", "SIZE",
           "memory of all workers, e.g. 64G (default: 90 % of the group's limit)", &memory},
          {"--state", "DIR", "folder for journal and caches (default: in PATCHBAY_HOME)", &state},
          PolicyArgument(data_policy),
          grace};
}

StatusOr<NodeSettings> NodeArguments::Settings(const client::Environment& environment,
                                               const std::string& agent_state,
                                               const std::string& key,
                                               const std::string& address) const {
  PB_RETURN_IF_ERROR(CheckGpus(gpus));
  PB_ASSIGN_OR_RETURN(const client::Site site, client::ReadSite(environment));
  PB_ASSIGN_OR_RETURN(const auto sharing, client::SharingOf(site));
  NodeSettings settings;
  if (sharing) settings.files = sharing->Text();
  settings.may_take_burned_in = site.may_take_burned_in;
  settings.functions = site.functions;
  settings.node_key = key;
  settings.state = agent_state;
  settings.cpus = cpus.value_or(UsableCores());
  settings.gpus = gpus;
  settings.stop_ms = static_cast<long>(grace_s.value_or(kUsualGraceS)) * 1000;
  PB_ASSIGN_OR_RETURN(settings.memory_bytes, MemoryFor(memory, settings.cpus));
  if (data_policy == NameOf(data::NetworkPolicy::kRdma)) {  // TLS needs no address of this node
    PB_ASSIGN_OR_RETURN(settings.network, client::NetworkTowards(data_policy, address));
  }
  return settings;
}

StatusOr<ExitCode> RunNode(Session& session, const NodeSettings& settings,
                           const std::function<void(const NodeProcesses&)>& ready) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), settings.state, 0700));
  // The journal of a first node has all that is left: its next start goes on.
  const ExitCode stopped = settings.scheduler.has_value() ? ExitCode::kDone : ExitCode::kStopped;
  StatusOr<NodeProcesses> started = NodeProcesses::Start(settings, [] { return !Interrupted(); });
  if (absl::IsAborted(started.status())) return stopped;
  PB_ASSIGN_OR_RETURN(NodeProcesses node, std::move(started));
  PB_ASSIGN_OR_RETURN(UniqueFd serves, client::HoldNodeServes(session.environment));
  ready(node);
  std::optional<int> exit;
  while (!Interrupted() && !(exit = node.PollExit()).has_value()) PauseMs(kExitLookMs);
  if (exit == static_cast<int>(ExitCode::kStopped)) return stopped;
  if (exit.has_value()) return *exit == 0 ? ExitCode::kDone : ExitCode::kFailed;
  serves.Close();
  session.terminal.Note("stopping: running tasks are finished or handed back");
  node.Stop(settings.stop_ms);
  return stopped;
}

}  // namespace patchbay::cli
