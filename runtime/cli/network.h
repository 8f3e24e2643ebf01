// The site's declaration about the network between its nodes, as `up` and `join` were given it.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cli/command.h"
#include "runtime/data/network_policy.h"

namespace patchbay::cli {

/// --data-policy, "" when not given.
Argument PolicyArgument(std::string& policy);

/// Keeps the policy below PATCHBAY_HOME for the trainers of this machine; "" or "none" forgets it.
Status DeclarePolicy(const Environment& environment, const std::string& policy);

/// The policy and the address from which this machine reaches the cluster's; kNone for "" and
/// "none", and for a cluster on a Unix socket.
StatusOr<data::Network> NetworkTowards(const std::string& policy,
                                       const std::string& cluster_address);

/// What a trainer here may let other nodes' workers deliver over: the given policy, or the declared
/// one, at the address from which this machine reaches the cluster's. kNone when nothing is
/// declared or the cluster is of this machine only.
StatusOr<data::Network> TrainerNetwork(const Environment& environment, const std::string& policy,
                                       const std::string& cluster_address);

}  // namespace patchbay::cli
