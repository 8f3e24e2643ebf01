// Where the control plane may listen and connect: numeric addresses, private by default.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay::control {

/// A parsed control address.
struct Address {
  enum class Kind { kTcp, kIpc };
  Kind kind = Kind::kTcp;
  std::string host;        ///< numeric IPv4 or IPv6 (kTcp); socket name after '@' (kIpc)
  std::uint16_t port = 0;  ///< 0 = any free port
  /// The address in the form of ZeroMQ and of key files.
  std::string ToString() const;
};

/// "tcp://10.0.0.7:7678", "tcp://[fd00::1]:7678", "tcp://127.0.0.1:*", "ipc://@name". No names, so
/// no DNS.
StatusOr<Address> ParseAddress(std::string_view text);

/// FailedPrecondition when this process may not open the sockets that listening there takes, as
/// under RestrictAddressFamilies= of a systemd unit or a container's seccomp profile: it names the
/// address family. Ask before: ZeroMQ, which lists the interfaces over AF_NETLINK, aborts without
/// it.
Status CheckAddressFamilies(const Address& address);

/// Loopback, RFC 1918, RFC 4193, link-local, shared (100.64/10) or a Unix socket.
bool IsPrivate(const Address& address);

/// 127/8 or ::1, without a port.
bool IsLoopback(std::string_view host);

/// A flag that names a file without which a page is for this machine alone; "" = not given.
struct PageGuard {
  std::string_view flag, file;
};
/// [ADDR:]PORT of a page for browsers and Prometheus: ADDR is 127.0.0.1 unless given, PORT * is any
/// free one. InvalidArgument names `flag`, for another form, or an address that is not loopback
/// while a guard is missing.
StatusOr<Address> ParsePagePlace(std::string_view flag, std::string_view place,
                                 std::initializer_list<PageGuard> guards);

}  // namespace patchbay::control
