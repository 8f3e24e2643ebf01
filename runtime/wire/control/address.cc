#include "runtime/wire/control/address.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "runtime/os/file.h"

namespace patchbay::control {
namespace {

constexpr std::size_t kMaxSocketName = 90;  // sun_path is 108 bytes

Status Bad(std::string_view text, std::string_view cause) {
  return InvalidArgument("parse address: ", text, ": ", cause);
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

StatusOr<Address> ParseIpc(std::string_view text, std::string_view rest) {
  if (rest.empty() || rest.front() != '@') {
    return Bad(text, "a Unix socket must be abstract, as in ipc://@name");
  }
  rest.remove_prefix(1);
  if (rest.empty() || rest.size() > kMaxSocketName ||
      !std::all_of(rest.begin(), rest.end(), IsNameCharacter)) {
    return Bad(text, "the socket's name may be 1 to 90 letters, digits, '.', '_' and '-'");
  }
  Address address;
  address.kind = Address::Kind::kIpc;
  address.host = std::string(rest);
  return address;
}

StatusOr<Address> ParseTcp(std::string_view text, std::string_view rest) {
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) return Bad(text, "it has no port");
  std::string host(rest.substr(0, colon));
  const std::string_view port = rest.substr(colon + 1);
  Address address;
  if (port != "*") {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size()) {
      return Bad(text, "the port is not a number from 0 to 65535 or *");
    }
  }
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), ignored.data()) != 1) {
      return Bad(text, "the host is not a numeric IPv6 address");
    }
  } else if (inet_pton(AF_INET, host.c_str(), ignored.data()) != 1) {
    return Bad(text, "the host must be a numeric address: names are not looked up");
  }
  address.host = std::move(host);
  return address;
}

bool IsPrivateV4(std::uint32_t ip) {
  const auto in = [ip](std::uint32_t network, int bits) {
    return (ip ^ network) >> (32 - bits) == 0;
  };
  return in(0x7F000000, 8) || in(0x0A000000, 8) || in(0xAC100000, 12) || in(0xC0A80000, 16) ||
         in(0xA9FE0000, 16) || in(0x64400000, 10);
}

}  // namespace

StatusOr<Address> ParseAddress(std::string_view text) {
  constexpr std::string_view kTcp = "tcp://", kIpc = "ipc://";
  if (text.substr(0, kTcp.size()) == kTcp) return ParseTcp(text, text.substr(kTcp.size()));
  if (text.substr(0, kIpc.size()) == kIpc) return ParseIpc(text, text.substr(kIpc.size()));
  return Bad(text, "it must start with tcp:// or ipc://@");
}

std::string Address::ToString() const {
  if (kind == Kind::kIpc) return StrCat("ipc://@", host);
  const std::string shown_port = port == 0 ? "*" : StrCat(port);
  if (host.find(':') != std::string::npos) return StrCat("tcp://[", host, "]:", shown_port);
  return StrCat("tcp://", host, ":", shown_port);
}

Status CheckAddressFamilies(const Address& address) {
  struct Family {
    int number;
    int type;
    const char* name;
  };
  std::vector<Family> needed = {{AF_UNIX, SOCK_STREAM, "AF_UNIX"}};
  if (address.kind == Address::Kind::kTcp) {
    const bool is_v6 = address.host.find(':') != std::string::npos;
    needed.push_back(is_v6 ? Family{AF_INET6, SOCK_STREAM, "AF_INET6"}
                           : Family{AF_INET, SOCK_STREAM, "AF_INET"});
    needed.push_back({AF_NETLINK, SOCK_RAW, "AF_NETLINK"});
  }
  for (const Family& family : needed) {
    const UniqueFd probe(socket(family.number, family.type | SOCK_CLOEXEC, 0));
    if (probe.valid() || (errno != EAFNOSUPPORT && errno != EPERM && errno != EACCES)) continue;
    return FailedPrecondition(
        "listen: ", address.ToString(), ": this process may not open ", family.name, " sockets (",
        std::strerror(errno),
        "): allow AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK (RestrictAddressFamilies= of the "
        "systemd unit, or the container's seccomp profile)");
  }
  return absl::OkStatus();
}

bool IsLoopback(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  return host == "::1" || (inet_pton(AF_INET, text.c_str(), &v4) == 1 && host.starts_with("127."));
}

StatusOr<Address> ParsePagePlace(std::string_view flag, std::string_view place,
                                 std::initializer_list<PageGuard> guards) {
  const bool has_host = place.find(':') != std::string_view::npos;
  StatusOr<Address> address = ParseAddress(StrCat("tcp://", has_host ? "" : "127.0.0.1:", place));
  if (!address.ok()) {
    return InvalidArgument(flag, " ", place, ": expected [ADDR:]PORT, such as 9178");
  }
  for (const PageGuard& guard : guards) {
    if (IsLoopback(address->host) || !guard.file.empty()) continue;
    return InvalidArgument(flag, " ", place, ": without ", guard.flag,
                           " FILE the page is for this machine alone: give that, or a loopback "
                           "address");
  }
  return address;
}

bool IsPrivate(const Address& address) {
  if (address.kind == Address::Kind::kIpc) return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return IsPrivateV4(ntohl(v4.s_addr));
  in6_addr v6;
  if (inet_pton(AF_INET6, address.host.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6)) return true;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::uint32_t ip = 0;
    for (int i = 12; i < 16; ++i) ip = (ip << 8) | v6.s6_addr[i];
    return IsPrivateV4(ip);
  }
  return (v6.s6_addr[0] & 0xFE) == 0xFC;
}

}  // namespace patchbay::control
