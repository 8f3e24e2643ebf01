#include "runtime/wire/data/tcp_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/core/clock.h"

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
    if (errno == EADDRINUSE) return absl::AlreadyExistsError(name);
    return FromErrno("listen for shards", name, errno);
  }
  return fd;
}

Status Unreachable(const std::string& address, const std::string& cause) {
  return absl::UnavailableError(
      StrCat("connect: ", address, ": ", cause,
             ": TCP connections from this node to there must be open (see `patchbay help join`)"));
}

}  // namespace

std::int64_t SteadyNowMs() { return SteadyNowNs() / 1'000'000; }

StatusOr<UniqueFd> ListenTcp(const std::string& address, const PortRange& ports,
                             std::string* bound) {
  StatusOr<UniqueFd> listener = absl::InternalError("no port was tried");
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    listener = ListenOn(address, static_cast<std::uint16_t>(port));
    if (!absl::IsAlreadyExists(listener.status())) break;
  }
  if (absl::IsAlreadyExists(listener.status())) {
    return absl::ResourceExhaustedError(StrCat("listen for shards: ", address, ": every port from ",
                                               ports.first, " to ", ports.last, " is taken"));
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
  if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::NotFoundError("nobody waits");
  const bool is_full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (is_full) return absl::ResourceExhaustedError("accept sender: no descriptor is left");
  return absl::UnavailableError(StrCat("accept sender: ", std::strerror(errno)));
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
    if (left < 0 && deadline_ms != kNoDeadline) return absl::DeadlineExceededError("no bytes came");
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

}  // namespace patchbay::data
