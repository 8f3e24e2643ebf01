// patchbay-agent: started by the supervisor.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/executable.h"
#include "runtime/os/file.h"
#include "runtime/os/host_identity.h"
#include "runtime/os/program_start.h"
#include "runtime/os/usable_cores.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/agent/agent.h"
#include "workers/agent/gpu_choice.h"
#include "workers/process/flags.h"

namespace patchbay::workers {
namespace {

protocol::Gpu ToProtocol(const memory::GpuDescription& gpu) {
  return {gpu.uuid, gpu.name, gpu.memory_bytes};
}

/// Opens a datagram socket towards the address: nothing is sent, the kernel only picks the route.
StatusOr<std::string> RouteFrom(const sockaddr* to, socklen_t size, const std::string& named) {
  const UniqueFd fd(socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), to, size) != 0) {
    return FromErrno("find route", named, errno);
  }
  sockaddr_storage from{};
  socklen_t from_size = sizeof(from);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &from_size) != 0) {
    return FromErrno("find route", named, errno);
  }
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes =
      from.ss_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&from)->sin_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr);
  inet_ntop(from.ss_family, bytes, text, sizeof(text));
  return std::string(text);
}

/// Physical memory, or the cgroup's limit where it is lower.
std::uint64_t UsableMemoryBytes() { return MemoryLimit().bytes / 100 * kMemoryUsePercent; }

/// The local IP address from which `control_address` ("tcp://10.0.0.7:7678") is reached;
/// FailedPrecondition for an address that is not TCP or not reachable.
StatusOr<std::string> LocalAddressTowards(const std::string& control_address) {
  PB_ASSIGN_OR_RETURN(const control::Address address, control::ParseAddress(control_address));
  if (address.kind != control::Address::Kind::kTcp) {
    return FailedPrecondition("find route: ", control_address,
                              ": other nodes cannot reach this cluster");
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    return RouteFrom(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4), control_address);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  if (inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) {
    return RouteFrom(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6), control_address);
  }
  return InvalidArgument("find route: ", control_address, ": not an address");
}

constexpr std::uint64_t kWorkersMax = 4096;
constexpr std::uint64_t kNoLimit = INT64_MAX;

Status SetNetwork(const Flags& flags, AgentOptions& options) {
  options.data_policy = flags.Text("data-policy", "tls");
  options.data_address = flags.Text("data-address", "");
  if (options.data_policy != "rdma" || !options.data_address.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(options.data_address, LocalAddressTowards(options.key.address));
  return absl::OkStatus();
}

Status SetGpus(const Flags& flags, char** environment, AgentOptions& options) {
  const std::string choice = flags.Text("gpus", "auto");
  std::string reason;
  std::vector<memory::GpuDescription> present;
  if (choice != "none") present = memory::ListGpus(&reason);
  // A build without CUDA leaves an engine's GPUs to the trainer.
  const EngineGpus engine = memory::BuiltWithCuda() ? EngineGpusOf(environment) : EngineGpus();
  PB_ASSIGN_OR_RETURN(const ChosenGpus chosen, ChooseGpus(choice, engine, present, reason));
  for (const memory::GpuDescription& gpu : chosen.gpus) options.gpus.push_back(ToProtocol(gpu));
  for (const std::string& note : chosen.notes) {
    options.gpus.empty() ? LogInfo(note) : LogWarning(note);
  }
  return absl::OkStatus();
}

StatusOr<AgentOptions> OptionsFromFlags(const Flags& flags, char** environment) {
  AgentOptions options;
  PB_ASSIGN_OR_RETURN(options.key_path, flags.Required("key"));
  PB_ASSIGN_OR_RETURN(options.key, control::ReadKeyFile(options.key_path));
  PB_ASSIGN_OR_RETURN(options.worker_program, SiblingBinary("patchbay-worker"));
  PB_ASSIGN_OR_RETURN(options.host_identity, HostIdentity());
  PB_ASSIGN_OR_RETURN(
      const std::uint64_t cpus,
      flags.Number("cpus", static_cast<std::uint64_t>(UsableCores()), 0, kWorkersMax));
  options.cpus = static_cast<std::uint32_t>(cpus);
  PB_RETURN_IF_ERROR(SetGpus(flags, environment, options));
  options.memory_bytes = UsableMemoryBytes();
  PB_ASSIGN_OR_RETURN(const std::uint64_t memory, flags.Number("memory", 0, 0, kNoLimit));
  if (memory > 0) {
    options.memory_bytes = std::min(options.memory_bytes, memory);
    options.worker_memory_bytes = memory / std::max<std::uint64_t>(cpus + options.gpus.size(), 1);
  }
  options.files = flags.Text("files", "");
  options.may_take_burned_in = flags.Has("burned-in");
  options.functions = flags.Text("functions", "");
  options.state_folder = flags.Text("state", "");
  if (!options.state_folder.empty()) {
    PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisProcess(), options.state_folder, 0700));
  }
  PB_ASSIGN_OR_RETURN(const std::uint64_t drain_ms,
                      flags.Number("drain-ms", 20'000, 0, 86'400'000));
  options.drain_ms = static_cast<TimeMs>(drain_ms);
  PB_ASSIGN_OR_RETURN(options.ready_fd, ReadyFd(flags));
  PB_RETURN_IF_ERROR(SetNetwork(flags, options));
  return options;
}

Status Serve(const std::vector<std::string>& words, char** environment) {
  PB_ASSIGN_OR_RETURN(
      const Flags flags,
      Flags::Parse(words, {"key", "cpus", "gpus", "state", "files", "burned-in", "functions",
                           "memory", "data-policy", "data-address", "drain-ms", "ready-fd"}));
  InitLogging("agent", LogSeverity::kInfo);
  PB_ASSIGN_OR_RETURN(const AgentOptions options, OptionsFromFlags(flags, environment));
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<control::EventLoop> loop, control::EventLoop::Open());
  Agent* agent = nullptr;
  PB_RETURN_IF_ERROR(loop->WatchSignals({SIGTERM, SIGINT, SIGCHLD},
                                        [&agent](int signal_number, pid_t sender) {
                                          if (agent == nullptr) return;
                                          if (signal_number == SIGCHLD) return agent->Reap();
                                          agent->Stop(sender == getppid());
                                        })
                         .status());
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<Agent> opened, Agent::Open(*loop, options));
  agent = opened.get();
  loop->Run();
  return opened->outcome();
}

int ExitOf(const Status& outcome) {
  switch (outcome.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kAborted:
      return kExitFailed;
    case absl::StatusCode::kCancelled:
      return kExitStopped;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return kExitGivenUp;
    default:
      return kExitCannotStart;
  }
}

}  // namespace

}  // namespace patchbay::workers
int main(int argc, char** argv, char** environment) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfAgents);
  using namespace patchbay::workers;
  const patchbay::Status status = Serve({argv + 1, argv + argc}, environment);
  if (!status.ok() && !absl::IsCancelled(status)) {
    std::fprintf(stderr, "patchbay-agent: %s\n", std::string(patchbay::MessageOf(status)).c_str());
  }
  return ExitOf(status);
}
