#include "workers/agent/key_claim.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/core/hash.h"

namespace patchbay::workers {
namespace {

constexpr int kBacklog = 16;

/// Nothing secret: every process of the machine may list the names of sockets.
std::string SocketNameOf(const control::KeyFile& key, const std::string& host_identity) {
  const Digest digest =
      Sha256Of(StrCat(key.server_key, " ", key.pair.public_key, " ", host_identity));
  return StrCat("patchbay-agent-", digest.Hex());
}

socklen_t AbstractAddress(const std::string& name, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

UniqueFd OpenSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// The process that listens there; pid 0 when that cannot be told.
ucred ListenerAt(const sockaddr_un& address, socklen_t length) {
  ucred found{0, geteuid(), getegid()};
  socklen_t size = sizeof(found);
  const UniqueFd fd = OpenSocket();
  if (fd.valid() && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &found, &size);
  }
  return found;
}

/// " (pid 7, state DIR)", from the agent's command line.
std::string Describe(pid_t pid) {
  if (pid <= 0) return "";
  std::ifstream file(StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::string state;
  for (std::string word; std::getline(file, word, '\0');) {
    if (word == "--state") std::getline(file, state, '\0');
  }
  return state.empty() ? StrCat(" (pid ", pid, ")") : StrCat(" (pid ", pid, ", state ", state, ")");
}

}  // namespace

KeyClaim::KeyClaim(control::EventLoop& loop, const control::KeyFile& key,
                   const std::string& host_identity)
    : loop_(loop), key_name_(key.name), socket_name_(SocketNameOf(key, host_identity)) {}

KeyClaim::~KeyClaim() { loop_.Cancel(watch_); }

Status KeyClaim::Take() {
  if (listener_.valid()) return absl::OkStatus();
  sockaddr_un address{};
  const socklen_t length = AbstractAddress(socket_name_, address);
  UniqueFd fd = OpenSocket();
  if (!fd.valid()) return absl::OkStatus();
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno != EADDRINUSE) return absl::OkStatus();
    const ucred holder = ListenerAt(address, length);
    // Another user's process may take any name, but not this user's node.
    if (holder.uid != geteuid()) return absl::OkStatus();
    return absl::AlreadyExistsError(
        StrCat("register node: the key ", key_name_, " is in use by another node on this machine",
               Describe(holder.pid),
               ": stop that one, or make another key with `patchbay key new NAME --role worker`"));
  }
  if (listen(fd.get(), kBacklog) != 0) return absl::OkStatus();
  // The connection itself tells the asker that the key is in use.
  PB_ASSIGN_OR_RETURN(watch_, loop_.Watch(fd.get(), [this] {
    const UniqueFd asker(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }));
  listener_ = std::move(fd);
  return absl::OkStatus();
}

}  // namespace patchbay::workers
