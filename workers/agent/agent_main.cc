// patchbay-agent: started by the supervisor.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/os/executable.h"
#include "runtime/os/file.h"
#include "runtime/os/file_limit.h"
#include "runtime/os/host_identity.h"
#include "runtime/os/last_words.h"
#include "runtime/os/oom_score.h"
#include "runtime/os/standard_streams.h"
#include "runtime/os/usable_cores.h"
#include "workers/agent/agent.h"
#include "workers/agent/node.h"
#include "workers/process/flags.h"

namespace patchbay::workers {
namespace {

constexpr std::uint64_t kWorkersMax = 4096;
constexpr std::uint64_t kNoLimit = INT64_MAX;

Status SetNetwork(const Flags& flags, AgentOptions& options) {
  options.data_policy = flags.Text("data-policy", "tls");
  options.data_address = flags.Text("data-address", "");
  if (options.data_policy != "rdma" || !options.data_address.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(options.data_address, LocalAddressTowards(options.key.address));
  return absl::OkStatus();
}

StatusOr<AgentOptions> OptionsFromFlags(const Flags& flags) {
  AgentOptions options;
  PB_ASSIGN_OR_RETURN(options.key_path, flags.Required("key"));
  PB_ASSIGN_OR_RETURN(options.key, control::ReadKeyFile(options.key_path));
  PB_ASSIGN_OR_RETURN(options.worker_program, SiblingBinary("patchbay-worker"));
  PB_ASSIGN_OR_RETURN(options.host_identity, HostIdentity());
  PB_ASSIGN_OR_RETURN(
      const std::uint64_t cpus,
      flags.Number("cpus", static_cast<std::uint64_t>(UsableCores()), 0, kWorkersMax));
  options.cpus = static_cast<std::uint32_t>(cpus);
  PB_ASSIGN_OR_RETURN(ChosenGpus chosen, ChooseGpus(flags.Text("gpus", "auto")));
  options.gpus = std::move(chosen.gpus);
  for (const std::string& note : chosen.notes) {
    options.gpus.empty() ? LogInfo(note) : LogWarning(note);
  }
  options.memory_bytes = UsableMemoryBytes();
  PB_ASSIGN_OR_RETURN(const std::uint64_t memory, flags.Number("memory", 0, 0, kNoLimit));
  if (memory > 0) {
    options.memory_bytes = std::min(options.memory_bytes, memory);
    options.worker_memory_bytes = memory / std::max<std::uint64_t>(cpus + options.gpus.size(), 1);
  }
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

Status Serve(const std::vector<std::string>& words) {
  PB_ASSIGN_OR_RETURN(const Flags flags,
                      Flags::Parse(words, {"key", "cpus", "gpus", "state", "memory", "data-policy",
                                           "data-address", "drain-ms", "ready-fd"}));
  InitLogging("agent", LogSeverity::kInfo);
  PB_ASSIGN_OR_RETURN(const AgentOptions options, OptionsFromFlags(flags));
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

int main(int argc, char** argv) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfAgents);
  using namespace patchbay::workers;
  const patchbay::Status status = Serve({argv + 1, argv + argc});
  if (!status.ok()) {
    std::fprintf(stderr, "patchbay-agent: %s\n", std::string(patchbay::MessageOf(status)).c_str());
  }
  return ExitOf(status);
}
