// Abstract SOCK_SEQPACKET Unix sockets: message boundaries, descriptors in passing, and the
// kernel's word on who the peer is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

namespace patchbay::data {

/// A listener under a fresh random name, which comes back in `name` (without the leading NUL).
/// Non-blocking.
StatusOr<UniqueFd> ListenAbstract(std::string_view prefix, std::string* name);

/// Unavailable when nobody listens. Blocking.
StatusOr<UniqueFd> ConnectAbstract(const std::string& name, std::int64_t timeout_ms);

/// A process at the other end, and a descriptor that becomes readable when it ends.
struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
  UniqueFd pidfd;  ///< only when asked for
};
/// FailedPrecondition when the peer lives in another PID namespace.
StatusOr<PeerProcess> IdentifyPeer(int socket, bool with_pidfd);

/// Opens a pidfd; nullopt-like invalid descriptor when no such process exists.
StatusOr<UniqueFd> OpenPidfd(pid_t pid);

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
