#include "runtime/cli/cluster/node_command.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "runtime/cli/cluster/network.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/cluster.h"
#include "runtime/client/network.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/usable_cores.h"

namespace patchbay::cli {
namespace {

constexpr long kLookEveryMs = 100;
constexpr std::uint64_t kWorkerNeedsBytes = 256ull << 20;  ///< to start, and for one small image

/// "64G", "512MiB": 0 for "".
StatusOr<std::uint64_t> ParseMemory(const std::string& text) {
  if (text.empty()) return 0;
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.ends_with("iB")) unit.remove_suffix(2);
  const std::size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  const std::size_t shift = 10 * (power + 1);
  if (error != std::errc() || power == std::string_view::npos || value == 0 ||
      value > (std::numeric_limits<std::int64_t>::max() >> shift)) {
    return UsageError(StrCat("--memory: expected a size such as 64G or 512M, not '", text, "'"));
  }
  return value << shift;
}

StatusOr<std::uint64_t> MemoryFor(const std::string& text, std::int64_t cpus) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, ParseMemory(text));
  const std::uint64_t workers = static_cast<std::uint64_t>(std::max<std::int64_t>(cpus, 1));
  if (bytes == 0 || bytes / workers >= kWorkerNeedsBytes) return bytes;
  return UsageError(StrCat("--memory: ", HumanBytes(bytes), " for ", Counted(workers, "worker"),
                           ": each needs ", HumanBytes(kWorkerNeedsBytes),
                           ": give more, or fewer --cpus"));
}

}  // namespace

std::vector<Argument> NodeArguments::Arguments() {
  Argument count{"--cpus", "N", "CPU workers (default: cores)", &cpus};
  count.min = 0;
  count.max = client::kMaxCpuWorkers;
  return {
      count,
      {"--gpus", "LIST", "auto, none, or UUIDs separated by commas (default auto)", &gpus},
      {"--memory", "SIZE", "memory of all workers together, e.g. 64G (default: no limit)", &memory},
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
  settings.cpus = cpus.value_or(UsableCores());
  settings.gpus = gpus;
  PB_ASSIGN_OR_RETURN(settings.memory_bytes, MemoryFor(memory, settings.cpus));
  if (data_policy == NameOf(data::NetworkPolicy::kRdma)) {  // TLS needs no address of this node
    PB_ASSIGN_OR_RETURN(settings.network, client::NetworkTowards(data_policy, address));
  }
  return settings;
}

StatusOr<ExitCode> RunNode(Session& session, const NodeSettings& settings,
                           const std::function<void(const NodeProcesses&)>& ready) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), settings.state, 0700));
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
