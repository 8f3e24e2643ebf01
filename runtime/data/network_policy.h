// What the site declares about the network between its nodes, and what UCX may use because of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace patchbay::data {

/// UCX has no authentication of its own: a peer that can open a connection to it can write to its
/// memory. So the network has to be one of these, and the site says which.
enum class NetworkPolicy {
  kNone,         ///< nothing declared: no delivery between nodes
  kRdma,         ///< InfiniBand or RoCE fabric of its own; never falls back to TCP
  kIsolatedTcp,  ///< plain TCP on a network that only the cluster's nodes can reach
  kWireGuard,    ///< TCP inside WireGuard
};

std::string_view NameOf(NetworkPolicy policy);
/// "rdma", "isolated-tcp", "wireguard"; nullopt for anything else.
std::optional<NetworkPolicy> NetworkPolicyFromName(std::string_view name);

/// The network a node may use for delivery.
struct Network {
  NetworkPolicy policy = NetworkPolicy::kNone;
  std::string address;  ///< numeric IP of the interface to listen on and to send from
};

/// The interface that has this address ("eth1", "wg0", "lo"). NotFound names the address.
StatusOr<std::string> InterfaceOf(const std::string& address);

/// Loopback, RFC 1918, shared (100.64/10), link-local and RFC 4193 addresses, in numbers.
bool IsPrivateAddress(const std::string& address);

/// What UCX_TLS and UCX_NET_DEVICES are set to for this network.
struct TransportLimits {
  std::string transports;
  std::string devices;
};
/// FailedPrecondition when no policy is declared, when the interface does not suit it (wireguard on
/// an interface that is not one; rdma without an RDMA device), or when the address is public.
StatusOr<TransportLimits> LimitsOf(const Network& network);

}  // namespace patchbay::data
