#include "runtime/wire/data/socket_address.h"

#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace patchbay::data {
StatusOr<SocketAddress> ParseSocketAddress(const std::string& host_and_port) {
  const auto refuse = [&host_and_port] {
    return absl::InvalidArgumentError(
        StrCat("parse address: ", host_and_port, ": not a numeric address and port"));
  };
  const std::size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos || colon + 1 == host_and_port.size()) return refuse();
  std::string host = host_and_port.substr(0, colon);
  std::uint32_t port = 0;
  for (const char c : host_and_port.substr(colon + 1)) {
    if (c < '0' || c > '9') return refuse();
    port = port * 10 + static_cast<std::uint32_t>(c - '0');
    if (port > 65535) return refuse();
  }
  SocketAddress out;
  sockaddr_in v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(out.storage, &v4, sizeof(v4));
    out.length = sizeof(v4);
    return out;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return refuse();
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(out.storage, &v6, sizeof(v6));
  out.length = sizeof(v6);
  return out;
}

std::string FormatSocketAddress(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  sockaddr_in v4;
  std::memcpy(&v4, address.storage, sizeof(v4));
  if (v4.sin_family == AF_INET) {
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return StrCat(static_cast<const char*>(text), ":", ntohs(v4.sin_port));
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, address.storage, sizeof(v6));
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return StrCat("[", static_cast<const char*>(text), "]:", ntohs(v6.sin6_port));
}

std::string JoinHostPort(const std::string& host, std::uint16_t port) {
  if (host.find(':') != std::string::npos) return StrCat("[", host, "]:", port);
  return StrCat(host, ":", port);
}

}  // namespace patchbay::data
