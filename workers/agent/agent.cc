#include "workers/agent/agent.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/host_identity.h"
#include "workers/process/heartbeat_watch.h"

namespace patchbay::workers {
namespace {

constexpr int kBacklog = 16;

/// Nothing secret: every process of the machine may list the names of sockets.
std::string SocketNameOf(const control::KeyFile& key, const std::string& host_identity) {
  const Digest digest =
      Sha256Of(StrCat(key.server_key, " ", key.pair.public_key, " ", host_identity));
  return StrCat("patchbay-agent-", digest.Hex());
}

socklen_t AbstractAddress(const std::string& name, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

UniqueFd OpenSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// The process that listens there; pid 0 when that cannot be told.
ucred ListenerAt(const sockaddr_un& address, socklen_t length) {
  ucred found{0, geteuid(), getegid()};
  socklen_t size = sizeof(found);
  const UniqueFd fd = OpenSocket();
  if (fd.valid() && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &found, &size);
  }
  return found;
}

/// " (pid 7, state DIR)", from the agent's command line.
std::string Describe(pid_t pid) {
  if (pid <= 0) return "";
  std::ifstream file(StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::string state;
  for (std::string word; std::getline(file, word, '\0');) {
    if (word == "--state") std::getline(file, state, '\0');
  }
  return state.empty() ? StrCat(" (pid ", pid, ")") : StrCat(" (pid ", pid, ", state ", state, ")");
}

constexpr TimeMs kHeartbeatMs = 500;
constexpr TimeMs kSilentMs = 1'000;  ///< a worker's, before the scheduler is told
constexpr TimeMs kRetryMs = 500;
constexpr TimeMs kRegisterTimeoutMs = 5'000;
constexpr TimeMs kRefusedMs = 10'000;    ///< refused for so long, it is refused for good
constexpr TimeMs kSayAgainMs = 30'000;   ///< the same refusal in the log
constexpr int kWorkerStartsMax = 3;      ///< failed starts of one worker
constexpr TimeMs kExitReportMs = 2'000;  ///< while draining, how long an answer is waited for

/// Libraries abort without advice when there is no address space left for a thread.
std::string AddressSpaceAdvice() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return StrCat("the limit on addresses, ", HumanBytes(limit.rlim_cur),
                ", may be too low: raise it (ulimit -v); ");
}

}  // namespace

KeyClaim::KeyClaim(control::EventLoop& loop, const control::KeyFile& key,
                   const std::string& host_identity)
    : loop_(loop), key_name_(key.name), socket_name_(SocketNameOf(key, host_identity)) {}

KeyClaim::~KeyClaim() { loop_.Cancel(watch_); }

Status KeyClaim::Take() {
  if (listener_.valid()) return absl::OkStatus();
  sockaddr_un address{};
  const socklen_t length = AbstractAddress(socket_name_, address);
  UniqueFd fd = OpenSocket();
  if (!fd.valid()) return absl::OkStatus();
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno != EADDRINUSE) return absl::OkStatus();
    const ucred holder = ListenerAt(address, length);
    // Another user's process may take any name, but not this user's node.
    if (holder.uid != geteuid()) return absl::OkStatus();
    return AlreadyExists(
        "register node: the key ", key_name_, " is in use by another node on this machine",
        Describe(holder.pid),
        ": stop that one, or make another key with `patchbay key new NAME --role worker`");
  }
  if (listen(fd.get(), kBacklog) != 0) return absl::OkStatus();
  // The connection itself tells the asker that the key is in use.
  PB_ASSIGN_OR_RETURN(watch_, loop_.Watch(fd.get(), [this] {
    const UniqueFd asker(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }));
  listener_ = std::move(fd);
  return absl::OkStatus();
}

struct Agent::Worker {
  std::uint32_t index = 0;
  std::string gpu_uuid;
  pid_t pid = 0;  ///< 0: not running
  std::uint64_t incarnation = 0;
  TimeMs started_ms = 0;
  RestartDelay delay;
  UniqueFd pipe;  ///< read end: its heartbeats
  control::EventLoop::Id watch = 0;
  int failed_starts = 0;  ///< consecutive starts that ended before a first message
  HeartbeatWatch heartbeats;
  TimeMs heard_ms = 0;  ///< its last heartbeat
};

StatusOr<std::unique_ptr<Agent>> Agent::Open(control::EventLoop& loop,
                                             const AgentOptions& options) {
  std::unique_ptr<Agent> agent(new Agent(loop, options));
  PB_RETURN_IF_ERROR(agent->Start());
  return agent;
}

Agent::Agent(control::EventLoop& loop, const AgentOptions& options)
    : loop_(loop),
      options_(options),
      parent_(loop, options.ready_fd),
      claim_(loop, options.key, options.host_identity),
      incarnation_(RandomU64()) {
  for (std::uint32_t i = 0; i < options.cpus; ++i) workers_.emplace_back().index = i;
  for (const protocol::Gpu& gpu : options.gpus) {
    Worker& worker = workers_.emplace_back();
    worker.index = static_cast<std::uint32_t>(workers_.size() - 1);
    worker.gpu_uuid = gpu.uuid;
  }
}

Agent::~Agent() { KillAll(); }

Status Agent::Start() {
  control::Session::Callbacks callbacks;
  callbacks.on_connected = [this] { Register(); };
  callbacks.on_lost = [this](const Status& why) { OnLost(why); };
  callbacks.on_fact = [this](protocol::Body body) { OnFact(std::move(body)); };
  PB_ASSIGN_OR_RETURN(session_, control::Session::Open(loop_, options_.key, std::move(callbacks)));
  loop_.Every(kHeartbeatMs, [this] {
    protocol::Heartbeat beat;
    for (const Worker& worker : workers_) {
      if (worker.pid != 0) beat.memory_bytes += ResidentBytes(worker.pid);
      const bool silent = loop_.NowMs() - worker.heard_ms >= kSilentMs;
      if (silent) beat.silent.push_back(worker.index);
    }
    session_->Tell(std::move(beat)).IgnoreError();  // not connected: the session is trying
  });
  loop_.Every(HeartbeatWatch::kLookEveryMs, [this] { KillFrozen(); });
  return absl::OkStatus();
}

void Agent::OnLost(const Status& why) {
  LogWarning(StrCat("the scheduler is not reachable: ", MessageOf(why)));
  StopWhenEmpty();
  if (!absl::IsPermissionDenied(why)) {
    refused_since_ = -1;
    return;
  }
  if (RefusedForLong()) End(why);
}

bool Agent::RefusedForLong() {
  if (refused_since_ < 0) refused_since_ = loop_.NowMs();
  return loop_.NowMs() - refused_since_ >= kRefusedMs;
}

void Agent::End(Status why) {
  if (!absl::IsAborted(why)) parent_.ReportFailure(MessageOf(why));
  outcome_ = std::move(why);
  loop_.Stop();
}

void Agent::Register() {
  if (registering_) return;
  loop_.Cancel(register_again_);
  if (const Status claimed = claim_.Take(); !claimed.ok()) return OnRefused(claimed);
  registering_ = true;
  protocol::RegisterAgent offer;
  offer.node = options_.key.name;
  offer.host_identity = options_.host_identity;
  // A GPU's worker has a core in addition to those of the CPU workers, so that no GPU waits for one
  // of them.
  offer.cpus = options_.cpus + static_cast<std::uint32_t>(options_.gpus.size());
  offer.memory_bytes = options_.memory_bytes;
  offer.gpus = options_.gpus;
  offer.agent_incarnation = incarnation_;
  offer.host_name = HostName();
  session_->Request(std::move(offer), kRegisterTimeoutMs, [this](StatusOr<protocol::Body> answer) {
    registering_ = false;
    const auto* registered =
        answer.ok() ? std::get_if<protocol::AgentRegistered>(&*answer) : nullptr;
    if (registered != nullptr) return OnRegistered(*registered);
    if (absl::IsAborted(answer.status())) return End(answer.status());  // another one took over
    OnRefused(answer.status());
  });
}

void Agent::OnRefused(const Status& why) {
  if (absl::IsAlreadyExists(why) && RefusedForLong()) return End(why);
  if (refusal_said_ != MessageOf(why) || loop_.NowMs() - refusal_said_at_ >= kSayAgainMs) {
    refusal_said_ = MessageOf(why);
    refusal_said_at_ = loop_.NowMs();
    LogWarning(StrCat("this node is not registered yet: ", refusal_said_));
  }
  register_again_ = loop_.After(kRetryMs, [this] {
    if (session_->connected()) Register();
  });
}

void Agent::OnRegistered(const protocol::AgentRegistered& registered) {
  scheduler_incarnation_ = registered.scheduler_incarnation;
  refused_since_ = -1;
  refusal_said_.clear();
  LogInfo(StrCat("node registered with scheduler incarnation ", scheduler_incarnation_, ", ",
                 options_.cpus, " CPU and ", options_.gpus.size(), " GPU workers, each ",
                 options_.worker_memory_bytes == 0
                     ? std::string("without a memory limit")
                     : StrCat("limited to ", HumanBytes(options_.worker_memory_bytes))));
  if (workers_.empty()) {
    LogWarning("this node has no workers and makes nothing (--cpus, --gpus)");
  }
  if (std::exchange(registered_once_, true)) return;
  for (Worker& worker : workers_) StartWorker(worker);
  parent_.ReportReady();
}

void Agent::OnFact(protocol::Body body) {
  if (const auto* kill = std::get_if<protocol::KillWorker>(&body)) {
    Kill(*kill);
  } else if (std::holds_alternative<protocol::Drain>(body)) {
    Drain();
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    if (scheduler_incarnation_ != 0 && seen->scheduler_incarnation != scheduler_incarnation_) {
      Register();
    }
  }
}

void Agent::StartWorker(Worker& worker) {
  if (draining_ || worker.pid != 0) return;
  worker.incarnation = std::max<std::uint64_t>(RandomU64(), 1);
  worker.started_ms = loop_.NowMs();
  const Status started = Launch(worker);
  if (started.ok()) return;
  LogError(StrCat("start worker ", worker.index, ": ", MessageOf(started)));
  loop_.After(worker.delay.Next(0), [this, &worker] { StartWorker(worker); });
}

Status Agent::Launch(Worker& worker) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return FromErrno("open pipe", "worker", errno);
  worker.pipe = UniqueFd(ends[0]);
  const UniqueFd to_parent(ends[1]);
  PB_ASSIGN_OR_RETURN(worker.watch,
                      loop_.Watch(ends[0], [this, &worker] { ReadHeartbeats(worker); }));
  ChildOptions start;
  start.arguments = CommandOf(worker);
  start.arguments.insert(start.arguments.end(), {"--ready-fd", StrCat(to_parent.get())});
  start.inherit_fd = to_parent.get();
  const pid_t pid = StartChild(start);
  if (pid < 0) {
    StopReading(worker);
    return FromErrno("fork", "worker", static_cast<int>(-pid));
  }
  worker.pid = pid;
  worker.heartbeats.Start(loop_.NowMs());
  return absl::OkStatus();
}

void Agent::ReadHeartbeats(Worker& worker) {
  char buffer[256];
  const ssize_t got = read(worker.pipe.get(), buffer, sizeof(buffer));
  if (got > 0) {
    worker.heard_ms = loop_.NowMs();
    worker.heartbeats.Beat(worker.heard_ms);
    worker.failed_starts = 0;
    any_started_ = true;
  }
  if (got == 0) StopReading(worker);
}

void Agent::StopReading(Worker& worker) {
  loop_.Cancel(std::exchange(worker.watch, 0));
  worker.pipe.Close();
}

/// Without its pipe a worker is ending: the drain has its own limit.
void Agent::KillFrozen() {
  for (Worker& worker : workers_) {
    if (worker.pid == 0 || worker.watch == 0) continue;
    if (!worker.heartbeats.Lost(worker.pid, loop_.NowMs())) continue;
    LogWarning(StrCat("killing worker ", worker.index, ": it does not respond"));
    kill(worker.pid, SIGKILL);
  }
}

std::vector<std::string> Agent::CommandOf(const Worker& worker) const {
  std::vector<std::string> words = {options_.worker_program,
                                    "--key",
                                    options_.key_path,
                                    "--index",
                                    StrCat(worker.index),
                                    "--agent-incarnation",
                                    StrCat(incarnation_),
                                    "--incarnation",
                                    StrCat(worker.incarnation),
                                    "--memory",
                                    StrCat(options_.worker_memory_bytes),
                                    "--state",
                                    options_.state_folder,
                                    "--data-policy",
                                    options_.data_policy};
  const auto add = [&words](const std::string& flag, const std::string& value) {
    words.push_back(flag);
    words.push_back(value);
  };
  if (!options_.files.empty()) add("--files", options_.files);
  if (options_.may_take_burned_in) add("--burned-in", "allowed");
  if (!options_.functions.empty()) add("--functions", options_.functions);
  if (!options_.data_address.empty()) add("--data-address", options_.data_address);
  if (!worker.gpu_uuid.empty()) {
    add("--numerics", "cuda");
    add("--gpu", worker.gpu_uuid);
    // The GPU's worker decodes for it: a fair share of the cores.
    const std::size_t threads = std::max<std::size_t>(options_.cpus / options_.gpus.size(), 1);
    add("--compute-threads", StrCat(threads));
  }
  return words;
}

void Agent::Reap() {
  int wait_status = 0;
  for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    for (Worker& worker : workers_) {
      if (worker.pid == pid) OnExit(worker, wait_status);
    }
  }
}

void Agent::OnExit(Worker& worker, int wait_status) {
  worker.pid = 0;
  if (worker.watch != 0) ReadHeartbeats(worker);
  StopReading(worker);
  protocol::WorkerExited exited;
  exited.node = options_.key.name;
  exited.index = worker.index;
  exited.worker_incarnation = worker.incarnation;
  exited.wait_status = wait_status;
  ReportExit(exited);
  if (draining_) return StopWhenEmpty();
  ++worker.failed_starts;
  if (NoneCanStart()) {
    return End(FailedPrecondition("start workers: none can start: ", AddressSpaceAdvice(),
                                  "the last one ended with ", DescribeWaitStatus(wait_status),
                                  ", its messages are in the log"));
  }
  if (LeavesOut(worker)) return;
  const long delay_ms = worker.delay.Next(loop_.NowMs() - worker.started_ms);
  LogWarning(StrCat("worker ", worker.index, " ended with ", DescribeWaitStatus(wait_status),
                    ", starting it again in ", delay_ms, " ms"));
  loop_.After(delay_ms, [this, &worker] { StartWorker(worker); });
}

/// A GPU whose worker cannot start is no longer offered: streams that need it then report that it
/// is missing.
bool Agent::LeavesOut(const Worker& worker) {
  if (worker.gpu_uuid.empty() || worker.failed_starts < kWorkerStartsMax) return false;
  LogError(StrCat("GPU ", worker.gpu_uuid, ": its worker ended ", worker.failed_starts,
                  " times before it was ready, see its messages above: the GPU is left out until "
                  "this node is started again"));
  std::erase_if(options_.gpus, [&](const auto& gpu) { return gpu.uuid == worker.gpu_uuid; });
  if (session_->connected()) Register();
  return true;
}

bool Agent::NoneCanStart() const {
  return !any_started_ && std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return worker.failed_starts >= kWorkerStartsMax;
  });
}

void Agent::ReportExit(const protocol::WorkerExited& exited) {
  ++reports_pending_;
  session_->Request(exited, draining_ ? kExitReportMs : 0, [this](StatusOr<protocol::Body> answer) {
    --reports_pending_;
    if (!answer.ok()) LogWarning(StrCat("report exit: ", MessageOf(answer.status())));
    StopWhenEmpty();
  });
}

void Agent::Kill(const protocol::KillWorker& kill_worker) {
  for (const Worker& worker : workers_) {
    if (worker.index != kill_worker.index || worker.pid == 0) continue;
    if (worker.incarnation != kill_worker.worker_incarnation) continue;  // it died and was replaced
    LogWarning(StrCat("killing worker ", worker.index, ": the scheduler gave it up"));
    kill(worker.pid, SIGKILL);
    return;
  }
  // A child of an agent dies with it, so a worker that this agent does not have is dead.
  protocol::WorkerExited exited;
  exited.node = options_.key.name;
  exited.index = kill_worker.index;
  exited.worker_incarnation = kill_worker.worker_incarnation;
  ReportExit(exited);
}

void Agent::Stop(bool by_parent) {
  if (outcome_.ok()) outcome_ = Cancelled("stopped by a signal");
  if (++stops_[by_parent ? 1 : 0] > 1) return KillAll();
  Drain();
}

void Agent::Drain() {
  if (std::exchange(draining_, true)) return;
  LogInfo("draining");
  session_->Request(protocol::Drain{}, kRegisterTimeoutMs, [](const StatusOr<protocol::Body>&) {});
  for (const Worker& worker : workers_) {
    if (worker.pid != 0) kill(worker.pid, SIGTERM);
  }
  loop_.After(options_.drain_ms, [this] { KillAll(); });
  StopWhenEmpty();
}

void Agent::KillAll() {
  for (const Worker& worker : workers_) {
    if (worker.pid != 0) kill(worker.pid, SIGKILL);
  }
}

void Agent::StopWhenEmpty() {
  const bool running = std::any_of(workers_.begin(), workers_.end(),
                                   [](const Worker& worker) { return worker.pid != 0; });
  if (draining_ && !running && (reports_pending_ == 0 || !session_->connected())) loop_.Stop();
}

}  // namespace patchbay::workers
