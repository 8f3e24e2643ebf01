#include "runtime/wire/control/unread_bytes.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace patchbay::control {

std::uint64_t UnreadBytes::Add(std::uint64_t peer, int fd, std::size_t bytes) {
  Connection& connection = connections_[peer];
  connection.fd = fd;
  connection.bytes += bytes;
  total_ += bytes;
  if (connection.bytes > kLookBytes) Look(connection);
  return total_ > most_ ? LeastRead() : 0;
}

void UnreadBytes::Forget(std::uint64_t peer) {
  const auto it = connections_.find(peer);
  if (it == connections_.end()) return;
  total_ -= it->second.bytes;
  connections_.erase(it);
}

void UnreadBytes::Look(Connection& connection) {
  int waiting = 0;
  const bool drained = ioctl(connection.fd, SIOCOUTQ, &waiting) != 0 || waiting < kDrainedBytes;
  if (!drained) return;
  total_ -= connection.bytes;
  connection.bytes = 0;
}

std::uint64_t UnreadBytes::LeastRead() {
  std::uint64_t least_read = 0, most_bytes = 0;
  for (auto& [peer, connection] : connections_) {
    Look(connection);
    if (connection.bytes <= most_bytes) continue;
    least_read = peer;
    most_bytes = connection.bytes;
  }
  return total_ > most_ ? least_read : 0;
}

}  // namespace patchbay::control
