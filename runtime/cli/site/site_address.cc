#include "runtime/cli/site/site_address.h"

#include <array>
#include <cerrno>

#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include "runtime/cli/command.h"
#include "runtime/client/network.h"
#include "runtime/core/strings.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::cli {
namespace {

/// The first address of that network interface; the text itself where it is an address.
StatusOr<std::string> AddressOfInterface(const std::string& interface) {
  if (data::ParseSocketAddress(data::JoinHostPort(interface, 0)).ok()) return interface;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return FromErrno("list network interfaces", interface, errno);
  std::string found;
  for (const ifaddrs* each = all; each != nullptr && found.empty(); each = each->ifa_next) {
    const bool is_v4 = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET;
    std::array<char, NI_MAXHOST> host{};
    if (is_v4 && interface == each->ifa_name &&
        getnameinfo(each->ifa_addr, sizeof(sockaddr_in), host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      found = host.data();
    }
  }
  freeifaddrs(all);
  if (!found.empty()) return found;
  return UsageError(StrCat("--interface: ", interface,
                           ": no network interface of this machine with an IPv4 address, and not "
                           "an IP address"));
}

}  // namespace

StatusOr<std::string> AddressInSite(const Engine& engine, const std::string& interface) {
  if (!interface.empty()) return AddressOfInterface(interface);
  if (engine.faces.empty()) {
    return UsageError("site run: --interface NAME: names the network that the nodes share");
  }
  PB_ASSIGN_OR_RETURN(const data::Network network,
                      client::NetworkTowards("", StrCat("tcp://", engine.faces, ":9")));
  return network.address;
}

}  // namespace patchbay::cli
