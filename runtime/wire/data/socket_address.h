// Numeric addresses with a port, as the data path takes them: no names, so no DNS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/core/status.h"

namespace patchbay::data {

/// "10.0.0.7:4711" or "[fd00::1]:4711" in the form the kernel takes.
struct SocketAddress {
  alignas(8) std::byte storage[128] = {};
  std::uint32_t length = 0;
};
/// InvalidArgument unless the host is numeric and the port one from 0 to 65535.
StatusOr<SocketAddress> ParseSocketAddress(const std::string& host_and_port);
std::string FormatSocketAddress(const SocketAddress& address);
/// "10.0.0.7:4711", "[fd00::1]:4711".
std::string JoinHostPort(const std::string& host, std::uint16_t port);

}  // namespace patchbay::data
