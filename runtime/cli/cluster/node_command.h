// The shared part of `up` and `join`: their arguments, and running a node until it is stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/cluster/node_processes.h"
#include "runtime/cli/command.h"

namespace patchbay::cli {

struct NodeArguments {
  std::optional<std::int64_t> cpus;
  std::string gpus = "auto";
  std::string memory;
  std::string state;
  std::string data_policy;

  std::vector<Argument> Arguments();
  /// For an agent of the cluster at `address`.
  StatusOr<NodeSettings> Settings(const std::string& agent_state, const std::string& key,
                                  const std::string& address) const;
};

/// Starts the node, calls `ready`, and waits until it ends or the command is interrupted; then
/// stops it in order. Needs an InterruptScope.
StatusOr<ExitCode> RunNode(Session& session, const NodeSettings& settings,
                           const std::function<void(const NodeProcesses&)>& ready);

}  // namespace patchbay::cli
