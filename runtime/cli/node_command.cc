#include "runtime/cli/node_command.h"

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/network.h"
#include "runtime/client/cluster.h"
#include "runtime/client/network.h"

namespace patchbay::cli {
namespace {

constexpr long kLookEveryMs = 100;

}  // namespace

std::vector<Argument> NodeArguments::Arguments() {
  Argument count{"--cpus", "N", "CPU workers (default: cores)", &cpus};
  count.min = 0;
  count.max = client::kMaxCpuWorkers;
  return {count,
          {"--gpus", "LIST", "auto, none, or UUIDs separated by commas (default auto)", &gpus},
          {"--state", "DIR", "folder for journal and caches (default: in PATCHBAY_HOME)", &state},
          PolicyArgument(data_policy)};
}

StatusOr<NodeSettings> NodeArguments::Settings(const std::string& agent_state,
                                               const std::string& key,
                                               const std::string& address) const {
  PB_RETURN_IF_ERROR(CheckGpus(gpus));
  NodeSettings settings;
  settings.node_key = key;
  settings.state = agent_state;
  settings.cpus = cpus.value_or(client::UsableCores());
  settings.gpus = gpus;
  if (data_policy == NameOf(data::NetworkPolicy::kRdma)) {  // TLS needs no address of this node
    PB_ASSIGN_OR_RETURN(settings.network, client::NetworkTowards(data_policy, address));
  }
  return settings;
}

StatusOr<ExitCode> RunNode(Session& session, const NodeSettings& settings,
                           const std::function<void(const NodeProcesses&)>& ready) {
  PB_RETURN_IF_ERROR(MakeDirectories(settings.state, 0700));
  PB_ASSIGN_OR_RETURN(NodeProcesses node,
                      NodeProcesses::Start(settings, [] { return !Interrupted(); }));
  ready(node);
  std::optional<int> exit;
  while (!Interrupted() && !(exit = node.PollExit()).has_value()) PauseMs(kLookEveryMs);
  if (exit.has_value()) return *exit == 0 ? ExitCode::kDone : ExitCode::kFailed;
  session.terminal.Note("stopping: running tasks are finished or handed back");
  node.Stop(settings.stop_ms);
  return ExitCode::kDone;
}

}  // namespace patchbay::cli
