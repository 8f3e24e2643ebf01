// The site's declaration about the network between its nodes, as `up` and `join` were given it.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/client/environment.h"
#include "runtime/data/network_policy.h"

namespace patchbay::client {

/// Where `up` and `join` keep the declared policy for the trainers of this machine.
std::string PolicyPath(const Environment& environment);

/// The policy and the address from which this machine reaches the cluster's; kNone for "" and
/// "none", and for a cluster on a Unix socket.
StatusOr<data::Network> NetworkTowards(const std::string& policy,
                                       const std::string& cluster_address);

/// What a trainer here may let other nodes' workers deliver over: the given policy, or the declared
/// one, at the address from which this machine reaches the cluster's. kNone when nothing is
/// declared or the cluster is of this machine only.
StatusOr<data::Network> TrainerNetwork(const Environment& environment, const std::string& policy,
                                       const std::string& cluster_address);

}  // namespace patchbay::client
