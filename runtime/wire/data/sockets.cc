#include "runtime/wire/data/sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5
#endif

namespace patchbay::data {
namespace {

constexpr int kBacklog = 128;
constexpr int kKeepIdleSeconds = 10, kKeepIntervalSeconds = 2, kKeepCount = 3;

const sockaddr* AsSockaddr(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(address.storage);
}

StatusOr<UniqueFd> OpenTcp(const SocketAddress& address) {
  UniqueFd fd(
      socket(AsSockaddr(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FromErrno("open socket", FormatSocketAddress(address), errno);
  return fd;
}

/// Small messages leave at once, and a peer whose machine is gone is noticed.
void TuneConnection(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kTcpUserTimeoutMs));
}

/// A listener on exactly this port; 0 = any.
StatusOr<UniqueFd> ListenOn(const std::string& host, std::uint16_t port) {
  const std::string name = JoinHostPort(host, port);
  PB_ASSIGN_OR_RETURN(const SocketAddress address, ParseSocketAddress(name));
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenTcp(address));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), AsSockaddr(address), address.length) != 0 || listen(fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) return AlreadyExists(name);
    return FromErrno("listen for shards", name, errno);
  }
  return fd;
}

Status Unreachable(const std::string& address, const std::string& cause) {
  return Unavailable(
      "connect: ", address, ": ", cause,
      ": TCP connections from this node to there must be open (see `patchbay help join`)");
}

constexpr int kUnixBacklog = 64;

StatusOr<socklen_t> AbstractAddress(const std::string& name, sockaddr_un& address) {
  if (name.empty() || name.size() > sizeof(address.sun_path) - 1) {
    return InvalidArgument("unix socket: the name is empty or too long");
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

StatusOr<SocketAddress> ParseSocketAddress(const std::string& host_and_port) {
  const auto refuse = [&host_and_port] {
    return InvalidArgument("parse address: ", host_and_port, ": not a numeric address and port");
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

std::int64_t SteadyNowMs() { return SteadyNowNs() / 1'000'000; }

StatusOr<UniqueFd> ListenTcp(const std::string& address, const PortRange& ports,
                             std::string* bound) {
  StatusOr<UniqueFd> listener = Internal("no port was tried");
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    listener = ListenOn(address, static_cast<std::uint16_t>(port));
    if (!absl::IsAlreadyExists(listener.status())) break;
  }
  if (absl::IsAlreadyExists(listener.status())) {
    return ResourceExhausted("listen for shards: ", address, ": every port from ", ports.first,
                             " to ", ports.last, " is taken");
  }
  PB_RETURN_IF_ERROR(listener.status());
  SocketAddress own;
  own.length = sizeof(own.storage);
  if (getsockname(listener->get(), reinterpret_cast<sockaddr*>(own.storage), &own.length) != 0) {
    return FromErrno("listen for shards", address, errno);
  }
  *bound = FormatSocketAddress(own);
  return listener;
}

StatusOr<UniqueFd> AcceptTcp(int listener) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    TuneConnection(fd.get());
    return fd;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return NotFound("nobody waits");
  const bool is_full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (is_full) return ResourceExhausted("accept sender: no descriptor is left");
  return Unavailable("accept sender: ", std::strerror(errno));
}

StatusOr<UniqueFd> ConnectTcp(const std::string& address, std::int64_t deadline_ms) {
  PB_ASSIGN_OR_RETURN(const SocketAddress to, ParseSocketAddress(address));
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenTcp(to));
  TuneConnection(fd.get());
  if (connect(fd.get(), AsSockaddr(to), to.length) == 0) return fd;
  if (errno != EINPROGRESS) return Unreachable(address, std::strerror(errno));
  if (!AwaitSocket(fd.get(), POLLOUT, deadline_ms).ok()) {
    return Unreachable(address, "no answer");
  }
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return Unreachable(address, std::strerror(error));
  return fd;
}

Status AwaitSocket(int socket, short events, std::int64_t deadline_ms) {
  for (;;) {
    const std::int64_t left = deadline_ms == kNoDeadline ? -1 : deadline_ms - SteadyNowMs();
    if (left < 0 && deadline_ms != kNoDeadline) return DeadlineExceeded("no bytes came");
    pollfd watched{socket, events, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return FromErrno("wait for", "socket", errno);
  }
}

std::string PeerAddress(int socket) {
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(peer.storage), &peer.length) != 0) {
    return "a peer that is gone";
  }
  return FormatSocketAddress(peer);
}

StatusOr<UniqueFd> ListenAbstract(std::string_view prefix, std::string* name) {
  *name = StrCat(prefix, "-", Hex64(RandomU64()), Hex64(RandomU64()));
  sockaddr_un address;
  PB_ASSIGN_OR_RETURN(const socklen_t length, AbstractAddress(*name, address));
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(fd.get(), kUnixBacklog) != 0) {
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
    return Unavailable("connect: unix socket: ", std::strerror(errno));
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
    return FailedPrecondition(
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
  // Older kernels: by process number. A peer that answers the challenge sent after this is alive
  // after this, so the number cannot have been reused before.
  auto watch = ExitWatch::Of(peer.pid, preferred);
  if (absl::IsNotFound(watch.status())) return Unavailable("identify peer: it is gone");
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
  return Unavailable("send: unix socket: ", std::strerror(errno));
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
    return DeadlineExceeded("receive: unix socket: no message in time");
  }
  if (got < 0) return Unavailable("receive: unix socket: ", std::strerror(errno));
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
    return InvalidArgument("receive: unix socket: the message is longer than allowed");
  }
  return static_cast<std::size_t>(got);
}

}  // namespace patchbay::data
