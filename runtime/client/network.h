// The site's declaration about the network between its nodes, as `up` and `join` were given it.
#pragma once

#include <string>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"
#include "runtime/wire/data/network_policy.h"

namespace patchbay::client {

/// Where `up` and `join` keep the declared policy for the trainers of this machine.
std::string PolicyPath(const Environment& environment);

/// The policy that is kept there; "" when none is.
std::string DeclaredPolicy(const Environment& environment);

/// The policy, TLS unless one is given, and the address from which this machine reaches the
/// cluster's; kNone for a cluster on a Unix socket. InvalidArgument for a policy of another name.
StatusOr<data::Network> NetworkTowards(const std::string& policy,
                                       const std::string& cluster_address);

/// Settings of where a trainer listens; "" = not set.
struct TrainerListening {
  std::string policy;   ///< tls or rdma; else this machine's declared policy
  std::string address;  ///< --data-listen: one of this node's; else that of the control connection
  std::string ports;    ///< key data.ports
};

/// The network over which workers of other nodes may deliver to here. kNone where the cluster is of
/// this machine only, and, with a warning, where its address is public and none was named.
StatusOr<data::Network> TrainerNetwork(const Environment& environment,
                                       const TrainerListening& listening,
                                       const std::string& cluster_address);

}  // namespace patchbay::client
