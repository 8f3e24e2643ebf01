// Sockets of the data path: TCP with numeric addresses, non-blocking, deadlines in steady
// milliseconds, peers that vanished noticed; abstract Unix sockets, which pass descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "runtime/core/port_range.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/exit_watch.h"

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

/// Time after which the kernel drops a connection with unacknowledged bytes.
inline constexpr std::int64_t kTcpUserTimeoutMs = 10'000;
inline constexpr std::int64_t kNoDeadline = INT64_MAX;

/// Monotonic milliseconds, for deadlines.
std::int64_t SteadyNowMs();

/// A non-blocking listener on the first free port of `ports` (or any), whose address is returned in
/// `bound`. ResourceExhausted when every port of the range is taken.
StatusOr<UniqueFd> ListenTcp(const std::string& address, const PortRange& ports,
                             std::string* bound);
/// The next connection, non-blocking; NotFound when none waits, ResourceExhausted when the process
/// has no descriptor left, Unavailable when the peer was gone before it was taken.
StatusOr<UniqueFd> AcceptTcp(int listener);
/// A non-blocking connection. Unavailable, with advice, when there is no answer within the
/// deadline.
StatusOr<UniqueFd> ConnectTcp(const std::string& address, std::int64_t deadline_ms);

/// Waits for POLLIN or POLLOUT (or the end of the connection); DeadlineExceeded when nothing came.
Status AwaitSocket(int socket, short events, std::int64_t deadline_ms);
/// "10.0.0.7:51234", for messages; "a peer that is gone" when the kernel does not know.
std::string PeerAddress(int socket);

// Abstract SOCK_SEQPACKET Unix sockets: message boundaries, descriptors in passing, and the
// kernel's word on who the peer is.

/// A listener under a fresh random name, which is returned in `name` (without the leading NUL).
/// Non-blocking.
StatusOr<UniqueFd> ListenAbstract(std::string_view prefix, std::string* name);

/// Unavailable without a listener. Blocking.
StatusOr<UniqueFd> ConnectAbstract(const std::string& name, std::int64_t timeout_ms);

/// The process at the other end.
struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
};
/// FailedPrecondition when the peer lives in another PID namespace.
StatusOr<PeerProcess> IdentifyPeer(int socket);

/// Watches the process that `peer` names, which connected through `socket`. Unavailable when it is
/// gone.
StatusOr<ExitWatch> WatchPeer(int socket, const PeerProcess& peer,
                              ExitProof preferred = ExitProof::kPidfd);

/// One message, optionally with a descriptor. Never raises SIGPIPE. Unavailable when the peer is
/// gone or (non-blocking socket) does not read.
Status SendMessage(int socket, std::span<const std::byte> message, int fd = -1);

/// One message into `buffer`, at most one descriptor into `fd` (further ones are closed). Returns
/// its size; 0 = the peer closed. DeadlineExceeded when none came in time (at once on a
/// non-blocking socket), Unavailable when the connection broke, InvalidArgument when it did not
/// fit.
StatusOr<std::size_t> ReceiveMessage(int socket, std::span<std::byte> buffer,
                                     UniqueFd* fd = nullptr);

}  // namespace patchbay::data
