#include "runtime/wire/data/network_policy.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "runtime/core/names.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::data {
namespace {

constexpr auto kNames = NamesInOrder<NetworkPolicy>("none", "tls", "rdma");

bool IsPrivateV4(std::uint32_t a) {
  return (a >> 24) == 127 || (a >> 24) == 10 || (a >> 20) == 0xac1 || (a >> 16) == 0xc0a8 ||
         (a >> 22) == 0x191 || (a >> 16) == 0xa9fe;
}

/// The RDMA device behind a network interface: "mlx5_0"; empty when there is none.
std::string RdmaDeviceOf(const std::string& interface) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    std::error_code missing;
    if (std::filesystem::exists(entry.path() / "device" / "net" / interface, missing)) {
      return entry.path().filename().string();
    }
  }
  return {};
}

}  // namespace

std::string_view NameOf(NetworkPolicy policy) { return kNames.Of(policy); }

std::optional<NetworkPolicy> NetworkPolicyFromName(std::string_view name) {
  const std::optional<NetworkPolicy> policy = kNames.Find(name);
  return policy == NetworkPolicy::kNone ? std::nullopt : policy;
}

bool IsPrivateAddress(const std::string& address) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return IsPrivateV4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, address.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6) || (v6.s6_addr[0] & 0xfe) == 0xfc;
}

StatusOr<std::string> InterfaceOf(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return FromErrno("list interfaces", address, errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (i->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text,
                sizeof(text));
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr, text,
                sizeof(text));
    }
    if (address == text) return std::string(i->ifa_name);
  }
  return NotFound("find interface: ", address, ": this node has no such address");
}

StatusOr<TransportLimits> LimitsOf(const Network& network) {
  const auto refuse = [&network](const std::string& cause) {
    return FailedPrecondition("use network: policy ", NameOf(network.policy), ": ", cause);
  };
  if (network.policy != NetworkPolicy::kRdma) return refuse("UCX serves rdma alone");
  if (!IsPrivateAddress(network.address)) {
    return refuse(StrCat(network.address, " is not a private numeric address"));
  }
  PB_ASSIGN_OR_RETURN(const std::string interface, InterfaceOf(network.address));
  if (network.rdma_over_tcp) return TransportLimits{"tcp", interface};
  const std::string device = RdmaDeviceOf(interface);
  if (device.empty()) return refuse(StrCat("interface ", interface, " has no RDMA device"));
  return TransportLimits{"rc", StrCat(device, ":1")};
}

Status CheckNetwork(const Network& network) {
  const auto refuse = [&network](const std::string& cause) {
    return FailedPrecondition("use network: policy ", NameOf(network.policy), ": ", network.address,
                              cause);
  };
  if (network.policy == NetworkPolicy::kNone) return refuse("nothing comes from other nodes");
  const auto address = ParseSocketAddress(JoinHostPort(network.address, 0));
  if (!address.ok()) return refuse(" is not a numeric address");
  if (network.address == "0.0.0.0" || network.address == "::") {
    return refuse(" is not an address that other nodes could connect to: name one of this node's");
  }
  if (IsPrivateAddress(network.address) || network.is_named) return absl::OkStatus();
  return refuse(" is public: name the address to listen on with --data-listen");
}

}  // namespace patchbay::data
