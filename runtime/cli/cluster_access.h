// The cluster that a command talks to, and the flags of its job and of a cluster of its own; what a
// user declares about the network between nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/client/cluster.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

inline constexpr std::uint16_t kDefaultPort = 7678;

/// Arguments of commands that submit a job and may start a cluster of their own.
struct OwnClusterArguments {
  std::int64_t priority = 0;
  std::optional<std::int64_t> cpus;
  std::string gpus = "auto";

  void AddTo(std::vector<Argument>& arguments);
};

/// A usage error unless the value of --gpus is auto, none, or UUIDs and indices of GPUs, which need
/// not exist.
Status CheckGpus(const std::string& list);

/// --cluster, or the cluster that client::Cluster::Open finds; an embedded one only with `own`.
client::ClusterOptions ClusterOptionsOf(const Session& session, const OwnClusterArguments* own);
/// Call it under an InterruptScope.
StatusOr<client::Cluster> OpenCluster(const Session& session, const OwnClusterArguments* own);

/// --data-policy, "" when not given.
Argument PolicyArgument(std::string& policy);

/// Keeps the policy below PATCHBAY_HOME for the trainers of this machine; "" forgets it.
Status DeclarePolicy(const client::Environment& environment, const std::string& policy);

}  // namespace patchbay::cli
