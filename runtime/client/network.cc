#include "runtime/client/network.h"

#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/core/log.h"
#include "runtime/core/port_range.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"

namespace patchbay::client {
namespace {

constexpr std::size_t kMaxPolicyBytes = 64;
constexpr std::uint16_t kAnyPort = 9;  ///< nothing is sent: connecting a UDP socket only routes it

/// The local address the kernel would send from.
StatusOr<std::string> AddressTowards(const std::string& host) {
  sockaddr_storage to{}, from{};
  auto* to4 = reinterpret_cast<sockaddr_in*>(&to);
  auto* to6 = reinterpret_cast<sockaddr_in6*>(&to);
  const bool is_v4 = inet_pton(AF_INET, host.c_str(), &to4->sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, host.c_str(), &to6->sin6_addr) != 1) {
    return InvalidArgument("find own address: ", host, ": not an IP address");
  }
  to.ss_family = is_v4 ? AF_INET : AF_INET6;
  (is_v4 ? to4->sin_port : to6->sin6_port) = htons(kAnyPort);
  const socklen_t length = is_v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const UniqueFd probe(socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  socklen_t from_length = sizeof(from);
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&to), length) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &from_length) != 0) {
    return FromErrno("find own address", host, errno);
  }
  char text[INET6_ADDRSTRLEN];
  const void* bytes = is_v4 ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&from)->sin_addr)
                            : &reinterpret_cast<sockaddr_in6*>(&from)->sin6_addr;
  return std::string(inet_ntop(from.ss_family, bytes, text, sizeof(text)));
}

}  // namespace

std::string PolicyPath(const Environment& environment) { return environment.home + "/data-policy"; }

std::string DeclaredPolicy(const Environment& environment) {
  const StatusOr<std::string> declared =
      ReadFile(Folders::OfThisUser(), PolicyPath(environment), kMaxPolicyBytes);
  return declared.ok() ? *declared : std::string();
}

StatusOr<data::Network> NetworkTowards(const std::string& policy,
                                       const std::string& cluster_address) {
  data::Network network;
  const auto known =
      policy.empty() ? data::NetworkPolicy::kTls : data::NetworkPolicyFromName(policy);
  if (!known.has_value()) {
    return InvalidArgument("data policy '", policy, "': expected tls or rdma");
  }
  PB_ASSIGN_OR_RETURN(const control::Address address, control::ParseAddress(cluster_address));
  if (address.kind == control::Address::Kind::kIpc) return network;
  network.policy = *known;
  PB_ASSIGN_OR_RETURN(network.address, AddressTowards(address.host));
  return network;
}

StatusOr<data::Network> TrainerNetwork(const Environment& environment,
                                       const TrainerListening& listening,
                                       const std::string& cluster_address) {
  if (!listening.address.empty()) {  // wrong is wrong, also where no other node connects
    PB_RETURN_IF_ERROR(Annotate(data::InterfaceOf(listening.address).status(), "--data-listen"));
  }
  const std::string policy =
      listening.policy.empty() ? DeclaredPolicy(environment) : listening.policy;
  StatusOr<data::Network> network = NetworkTowards(policy, cluster_address);
  if (!network.ok() && listening.policy.empty()) {
    return Annotate(network.status(), PolicyPath(environment));
  }
  if (!network.ok() || network->policy == data::NetworkPolicy::kNone) return network;
  PB_ASSIGN_OR_RETURN(network->ports, ParsePortRange(listening.ports));
  if (!listening.address.empty()) {
    network->address = listening.address;
    network->is_named = true;
  } else if (!data::IsPrivateAddress(network->address)) {
    LogWarning(StrCat("batches from other nodes are refused: this node's address ",
                      network->address,
                      " is public; name the one to listen on with --data-listen"));
    return data::Network{};
  }
  return network;
}

}  // namespace patchbay::client
