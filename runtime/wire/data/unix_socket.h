// Abstract SOCK_SEQPACKET Unix sockets: message boundaries, descriptors in passing, and the
// kernel's word on who the peer is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/exit_watch.h"

namespace patchbay::data {

/// A listener under a fresh random name, which comes back in `name` (without the leading NUL).
/// Non-blocking.
StatusOr<UniqueFd> ListenAbstract(std::string_view prefix, std::string* name);

/// Unavailable when nobody listens. Blocking.
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
