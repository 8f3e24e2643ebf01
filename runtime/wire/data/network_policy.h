// The transport of batches between nodes, and the UCX transports allowed on a declared RDMA fabric.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/port_range.h"
#include "runtime/core/status.h"

namespace patchbay::data {

/// How batches travel between nodes.
enum class NetworkPolicy {
  kNone,  ///< they do not: a cluster of one machine on a Unix socket
  kTls,   ///< TLS 1.3 over TCP: needs no trusted network; the default
  kRdma,  ///< UCX on a private InfiniBand or RoCE fabric, on which every peer is trusted:
          ///< UCX does not authenticate. Never falls back to TCP
};

std::string_view NameOf(NetworkPolicy policy);
/// "tls", "rdma"; nullopt for anything else.
std::optional<NetworkPolicy> NetworkPolicyFromName(std::string_view name);

/// The network a node may use for delivery.
struct Network {
  NetworkPolicy policy = NetworkPolicy::kNone;
  std::string address;         ///< numeric IP to listen on; with kRdma also to send from
  PortRange ports;             ///< to listen on (kTls)
  bool is_named = false;       ///< the user named the address: it may be public
  bool rdma_over_tcp = false;  ///< tests only: UCX over TCP instead of a fabric
};

/// The interface that has this address ("eth1", "wg0", "lo"). NotFound names the address.
StatusOr<std::string> InterfaceOf(const std::string& address);

/// Loopback, RFC 1918, shared (100.64/10), link-local and RFC 4193 addresses, in numbers.
bool IsPrivateAddress(const std::string& address);

/// Values of UCX_TLS and UCX_NET_DEVICES for this network.
struct TransportLimits {
  std::string transports;
  std::string devices;
};
/// FailedPrecondition unless the policy is kRdma, its address private and its interface one with an
/// RDMA device.
StatusOr<TransportLimits> LimitsOf(const Network& network);

/// Checks that a trainer may listen at the address: FailedPrecondition for policy kNone, for
/// anything but a numeric address or a wildcard, and for a public address that was not given
/// explicitly.
Status CheckNetwork(const Network& network);

}  // namespace patchbay::data
