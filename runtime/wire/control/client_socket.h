// A peer's end of the control plane: one DEALER over CURVE that reconnects by itself.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::control {

/// A socket of raw frames; most callers use Session (session.h). Lives on its loop's thread.
class ClientSocket {
 public:
  struct Options {
    std::string address;
    std::string server_key;
    KeyPair pair;
    bool allow_public = false;
    /// How long the other side may take to prove who it is; a frozen one takes for ever.
    int handshake_ms = 3000;
  };
  struct Callbacks {
    std::function<void(std::span<const std::byte>)> on_message;
    /// The handshake succeeded, for the first time or after a loss. The server has forgotten this
    /// client.
    std::function<void()> on_connected;
    /// Unavailable: not reachable (yet), silent or lost; PermissionDenied: the scheduler does not
    /// know this key, or it was revoked, or server_key is not the scheduler's. The socket keeps
    /// trying in every case.
    std::function<void(const Status&)> on_lost;
  };

  static StatusOr<std::unique_ptr<ClientSocket>> Connect(EventLoop& loop, const Options& options,
                                                         Callbacks callbacks);
  virtual ~ClientSocket() = default;

  /// Never blocks. Unavailable while not connected, ResourceExhausted when the queue is full.
  virtual Status Send(std::span<const std::byte> bytes) = 0;
  virtual bool connected() const = 0;
};

}  // namespace patchbay::control
