#include "runtime/wire/data/unix_socket.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/core/hash.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace patchbay::data {
namespace {

constexpr int kBacklog = 64;

StatusOr<socklen_t> AbstractAddress(const std::string& name, sockaddr_un& address) {
  if (name.empty() || name.size() > sizeof(address.sun_path) - 1) {
    return absl::InvalidArgumentError("unix socket: the name is empty or too long");
  }
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Status SetTimeout(int socket, std::int64_t timeout_ms) {
  const timeval tv{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) != 0 ||
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0) {
    return FromErrno("set timeout", "unix socket", errno);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<UniqueFd> ListenAbstract(std::string_view prefix, std::string* name) {
  *name = StrCat(prefix, "-", Hex64(RandomU64()), Hex64(RandomU64()));
  sockaddr_un address;
  PB_ASSIGN_OR_RETURN(const socklen_t length, AbstractAddress(*name, address));
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return FromErrno("listen", "unix socket", errno);
  }
  return fd;
}

StatusOr<UniqueFd> ConnectAbstract(const std::string& name, std::int64_t timeout_ms) {
  sockaddr_un address;
  PB_ASSIGN_OR_RETURN(const socklen_t length, AbstractAddress(name, address));
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return FromErrno("connect", "unix socket", errno);
  PB_RETURN_IF_ERROR(SetTimeout(fd.get(), timeout_ms));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    return absl::UnavailableError(StrCat("connect: unix socket: ", std::strerror(errno)));
  }
  return fd;
}

StatusOr<PeerProcess> IdentifyPeer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return FromErrno("identify peer", "unix socket", errno);
  }
  if (credentials.pid <= 0) {
    return absl::FailedPreconditionError(
        "identify peer: unix socket: the peer lives in another PID namespace");
  }
  return PeerProcess{credentials.pid, credentials.uid};
}

StatusOr<ExitWatch> WatchPeer(int socket, const PeerProcess& peer, ExitProof preferred) {
  int pidfd = -1;
  socklen_t length = sizeof(pidfd);
  if (preferred == ExitProof::kPidfd &&
      getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0) {
    return ExitWatch(UniqueFd(pidfd));
  }
  // Older kernels: by number. Whoever answers the challenge that is sent after this is alive after
  // this, so the number cannot have passed to another process before it.
  auto watch = ExitWatch::Of(peer.pid, preferred);
  if (absl::IsNotFound(watch.status())) {
    return absl::UnavailableError("identify peer: it is gone");
  }
  return watch;
}

Status SendMessage(int socket, std::span<const std::byte> message, int fd) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(message.size())) return absl::OkStatus();
  return absl::UnavailableError(StrCat("send: unix socket: ", std::strerror(errno)));
}

StatusOr<std::size_t> ReceiveMessage(int socket, std::span<std::byte> buffer, UniqueFd* fd) {
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * 4)] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = -1;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return absl::DeadlineExceededError("receive: unix socket: no message in time");
  }
  if (got < 0) {
    return absl::UnavailableError(StrCat("receive: unix socket: ", std::strerror(errno)));
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      UniqueFd owned(received);
      if (fd != nullptr && !fd->valid()) *fd = std::move(owned);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError("receive: unix socket: the message is longer than allowed");
  }
  return static_cast<std::size_t>(got);
}

}  // namespace patchbay::data
