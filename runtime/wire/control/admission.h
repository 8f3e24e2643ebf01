// Admission of connections: the ZAP thread that every handshake asks (ZeroMQ RFC 27), and the bytes
// that admitted peers were sent and have not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "absl/container/flat_hash_map.h"
#include "runtime/core/status.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/wire/control/authorized_keys.h"

namespace patchbay::control {

/// ZeroMQ counts the messages of a connection's queue, not their bytes. Here the bytes sent over a
/// connection add up until its socket is seen to have little left to send: then the queue before it
/// is empty, or about to be. Lives on its socket's thread.
class UnreadBytes {
 public:
  /// A socket that holds less has room for more, so nothing waits before it.
  static constexpr int kDrainedBytes = 64 << 10;
  /// The socket is not examined below this.
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

inline constexpr char kZapDomain[] = "patchbay";

/// Answers ZAP requests from the key table until stopped. Only CURVE in our domain with a key that
/// is known and not revoked is let in; the key's name becomes the connection's User-Id.
class Admission {
 public:
  /// Starts the thread; it answers before Start returns. `dropped` records refused peers; it must
  /// outlive the admission.
  static StatusOr<std::unique_ptr<Admission>> Start(zmq::context_t& context, AuthorizedKeys keys,
                                                    DroppedPeers& dropped);
  ~Admission();

  void ReplaceKeys(AuthorizedKeys keys);
  /// After this no handshake succeeds. Idempotent.
  void Stop();

 private:
  Admission(zmq::socket_t requests, zmq::socket_t stop_sender, zmq::socket_t stop_receiver,
            AuthorizedKeys keys, DroppedPeers& dropped);
  void Run();
  /// Answers one request; false when nothing was waiting.
  bool AnswerOne();
  /// The key's name; PermissionDenied with the reason for which it is refused.
  StatusOr<std::string> NameOf(const std::string& public_key);

  zmq::socket_t requests_;  // the thread's, once it runs
  zmq::socket_t stop_sender_, stop_receiver_;
  std::mutex keys_mu_;
  AuthorizedKeys keys_;  // guarded by keys_mu_
  DroppedPeers& dropped_;
  std::thread thread_;
};

}  // namespace patchbay::control
