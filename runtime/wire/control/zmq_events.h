// ZeroMQ's events on connections: the monitor of one socket.
#pragma once

#include <cstdint>
#include <vector>

#include <zmq.hpp>

#include "runtime/core/status.h"
#include "runtime/wire/control/address.h"

namespace patchbay::control {

/// The most bytes that CURVE and ZMTP add to a message; larger frames are refused.
inline constexpr std::int64_t kFrameOverheadBytes = 256;
inline constexpr int kHeartbeatIntervalMs = 500;
inline constexpr int kHeartbeatTimeoutMs = 1500;
inline constexpr int kHandshakeMs = 3000;
/// Messages that may wait for one peer; flow control allows far fewer in flight.
inline constexpr int kQueueMessagesMax = 1024;

/// One event as ZeroMQ numbers it.
struct ConnectionEvent {
  std::uint16_t event = 0;  ///< ZMQ_EVENT_*
  std::uint32_t value = 0;  ///< the descriptor, or the reason of a failure
};

/// Reads the monitor of a socket. Lives on that socket's thread and ends before it is closed.
class ConnectionMonitor {
 public:
  /// Throws zmq::error_t: callers are files of this folder, which catch it.
  ConnectionMonitor(zmq::context_t& context, zmq::socket_t& socket, int events);
  /// Stops the reports first: without a reader, ZeroMQ's own thread would block for ever.
  ~ConnectionMonitor();
  ConnectionMonitor(const ConnectionMonitor&) = delete;
  ConnectionMonitor& operator=(const ConnectionMonitor&) = delete;

  int fd() const;
  bool pending() const;
  /// All events that are pending now.
  std::vector<ConnectionEvent> Drain();

 private:
  void* monitored_ = nullptr;
  zmq::socket_t events_;
};

/// Heartbeats, limits and queue lengths that both ends share.
void SetSharedOptions(zmq::socket_t& socket, const Address& address);

/// True when a message waits. Must be asked again after every send and receive.
bool HasInput(const zmq::socket_t& socket);

}  // namespace patchbay::control
