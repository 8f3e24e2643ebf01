// The scheduler's end of the control plane: one bound socket, every peer known by its key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/wire/control/authorized_keys.h"
#include "runtime/wire/control/event_loop.h"

namespace patchbay::control {

/// One authenticated connection. A peer that reconnects is a new PeerId; ids are never reused.
using PeerId = std::uint64_t;

/// A connection with the rights of its key, as they were when it connected.
struct Peer {
  PeerId id = 0;
  std::string key_name;  ///< from the key, never from the peer's messages
  Role role = Role::kSubmitter;
  std::vector<std::string> read_prefixes, write_prefixes;
  std::string team = {};
};

/// ROUTER over CURVE with its ZAP thread. No connection is accepted without a key of the table;
/// there is no mode without keys. Lives on its loop's thread.
class ServerSocket {
 public:
  struct Options {
    std::string address;        ///< "tcp://ip:port" (port 0 or * = any), "ipc://@name"
    KeyPair pair;               ///< the server's own
    bool allow_public = false;  ///< the user named a public address on purpose
    std::uint32_t peers_max = 4096;
    /// Limit on the unread bytes of all peers together; above it the peer that has read least is
    /// cut.
    std::uint64_t unread_bytes_max = 256u << 20;
  };
  struct Callbacks {
    /// The bytes are valid during the call.
    std::function<void(const Peer&, std::span<const std::byte>)> on_message;
    /// The peer is disconnected, revoked, replaced or silent at the transport: it sends no further
    /// messages.
    std::function<void(PeerId)> on_gone;
  };
  struct Counters {
    std::uint64_t accepted = 0;           ///< connections that passed the handshake
    std::uint64_t refused_keys = 0;       ///< handshakes with an unknown or revoked key
    std::uint64_t failed_handshakes = 0;  ///< no CURVE, garbage, never finished, or left
    std::uint64_t dropped_messages = 0;  ///< malformed at the transport or from a stolen routing id
    std::uint64_t cut_peers = 0;         ///< did not read their messages, or were revoked
  };

  /// AlreadyExists when the address is in use, PermissionDenied for a public address that was not
  /// allowed, InvalidArgument for a bad address.
  static StatusOr<std::unique_ptr<ServerSocket>> Bind(EventLoop& loop, Options options,
                                                      AuthorizedKeys keys, Callbacks callbacks);
  virtual ~ServerSocket() = default;

  /// Never blocks. NotFound when the peer is gone; a peer whose queue is full is cut
  /// (ResourceExhausted).
  virtual Status Send(PeerId peer, std::span<const std::byte> bytes) = 0;
  /// Ends the session; on_gone is not called for it.
  virtual void Disconnect(PeerId peer) = 0;
  /// From now on these keys count; sessions of keys that are revoked, gone or changed are ended
  /// (on_gone is called).
  virtual void ReplaceKeys(AuthorizedKeys keys) = 0;
  /// While true nothing is read from peers: their queues, then they, wait.
  virtual void Pause(bool paused) = 0;
  /// Ends the admission thread: from here on every handshake fails; sessions stay.
  virtual void StopAdmitting() = 0;
  virtual const Peer* Find(PeerId peer) const = 0;
  /// With the port that was chosen.
  virtual const std::string& address() const = 0;
  virtual Counters counters() const = 0;
  /// Peers that the handshake turned away, by address where ZeroMQ tells it.
  virtual std::vector<DroppedPeer> dropped_peers() const = 0;
};

}  // namespace patchbay::control
