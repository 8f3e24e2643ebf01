// TCP as the data path uses it: non-blocking sockets, deadlines in steady milliseconds, peers that
// vanished noticed.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/port_range.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/socket_address.h"

namespace patchbay::data {

/// Time that a connection may be silent with bytes on their way, before the kernel gives it up.
inline constexpr std::int64_t kTcpUserTimeoutMs = 10'000;
inline constexpr std::int64_t kNoDeadline = INT64_MAX;

/// Monotonic milliseconds, for deadlines.
std::int64_t SteadyNowMs();

/// A non-blocking listener on the first free port of `ports` (or any), whose address comes back in
/// `bound`. ResourceExhausted when every port of the range is taken.
StatusOr<UniqueFd> ListenTcp(const std::string& address, const PortRange& ports,
                             std::string* bound);
/// The next connection, non-blocking; NotFound when none waits, ResourceExhausted when the process
/// has no descriptor left, Unavailable when the peer was gone before it was taken.
StatusOr<UniqueFd> AcceptTcp(int listener);
/// A non-blocking connection. Unavailable, saying what to look at, when nobody answers until then.
StatusOr<UniqueFd> ConnectTcp(const std::string& address, std::int64_t deadline_ms);

/// Waits for POLLIN or POLLOUT (or the end of the connection); DeadlineExceeded when nothing came.
Status AwaitSocket(int socket, short events, std::int64_t deadline_ms);
/// "10.0.0.7:51234", for messages; "a peer that is gone" when the kernel does not know.
std::string PeerAddress(int socket);

}  // namespace patchbay::data
