// Bytes sent to peers that may still wait in this process, so that a peer that asks for much and
// reads nothing cannot take its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

namespace patchbay::control {

/// ZeroMQ counts the messages of a connection's queue, not their bytes. Here the bytes sent over a
/// connection add up until its socket is seen to have little left to send: then the queue before it
/// is empty, or about to be. Lives on its socket's thread.
class UnreadBytes {
 public:
  /// A socket that holds less has room for more, so nothing waits before it.
  static constexpr int kDrainedBytes = 64 << 10;
  /// Below this nobody looks at the socket.
  static constexpr std::uint64_t kLookBytes = 1u << 20;

  explicit UnreadBytes(std::uint64_t most) : most_(most) {}

  /// So many bytes were sent over the connection with that descriptor. Above `most` in all: the
  /// connection that has to be cut, which has read least; else 0. It is forgotten by Forget alone.
  std::uint64_t Add(std::uint64_t peer, int fd, std::size_t bytes);
  void Forget(std::uint64_t peer);
  std::uint64_t total() const { return total_; }

 private:
  struct Connection {
    int fd = -1;
    std::uint64_t bytes = 0;
  };
  void Look(Connection& connection);
  std::uint64_t LeastRead();

  std::uint64_t most_ = 0, total_ = 0;
  absl::flat_hash_map<std::uint64_t, Connection> connections_;
};

}  // namespace patchbay::control
