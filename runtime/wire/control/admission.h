// Admission of connections: the ZAP thread that every handshake asks (ZeroMQ RFC 27).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "runtime/core/status.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/wire/control/authorized_keys.h"

namespace patchbay::control {

inline constexpr char kZapDomain[] = "patchbay";

/// Answers ZAP requests from the key table until stopped. Only CURVE in our domain with a key that
/// is known and not revoked is let in; the key's name becomes the connection's User-Id.
class Admission {
 public:
  /// Starts the thread; it answers before Start returns. `dropped` takes those that are refused; it
  /// must outlive the admission.
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
  /// The key's name; PermissionDenied says why it is refused.
  StatusOr<std::string> NameOf(const std::string& public_key);

  zmq::socket_t requests_;  // the thread's, once it runs
  zmq::socket_t stop_sender_, stop_receiver_;
  std::mutex keys_mu_;
  AuthorizedKeys keys_;  // guarded by keys_mu_
  DroppedPeers& dropped_;
  std::thread thread_;
};

}  // namespace patchbay::control
