#include "runtime/wire/control/zmq_events.h"

#include <atomic>
#include <cstring>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::control {
namespace {

std::string NextMonitorAddress() {
  static std::atomic<std::uint64_t> last{0};
  return StrCat("inproc://patchbay.monitor.", ++last);
}

}  // namespace

ConnectionMonitor::ConnectionMonitor(zmq::context_t& context, zmq::socket_t& socket, int events) {
  const std::string address = NextMonitorAddress();
  if (zmq_socket_monitor(socket.handle(), address.c_str(), events) != 0) throw zmq::error_t();
  events_ = zmq::socket_t(context, zmq::socket_type::pair);
  events_.set(zmq::sockopt::linger, 0);
  events_.set(zmq::sockopt::rcvhwm, 0);  // a full queue would block ZeroMQ's own thread
  events_.connect(address);
  monitored_ = socket.handle();
}

ConnectionMonitor::~ConnectionMonitor() {
  if (monitored_ != nullptr) zmq_socket_monitor(monitored_, nullptr, 0);
}

int ConnectionMonitor::fd() const { return events_.get(zmq::sockopt::fd); }
bool ConnectionMonitor::pending() const { return HasInput(events_); }

std::vector<ConnectionEvent> ConnectionMonitor::Drain() {
  std::vector<ConnectionEvent> drained;
  for (;;) {
    zmq::message_t head;
    if (!events_.recv(head, zmq::recv_flags::dontwait)) return drained;
    ConnectionEvent event;
    if (head.size() == sizeof event.event + sizeof event.value) {
      std::memcpy(&event.event, head.data(), sizeof event.event);
      std::memcpy(&event.value, head.data<char>() + sizeof event.event, sizeof event.value);
      drained.push_back(event);
    }
    for (bool more = head.more(); more;) {
      zmq::message_t rest;
      if (!events_.recv(rest, zmq::recv_flags::dontwait)) return drained;
      more = rest.more();
    }
  }
}

void SetSharedOptions(zmq::socket_t& socket, const Address& address) {
  socket.set(zmq::sockopt::heartbeat_ivl, kHeartbeatIntervalMs);
  socket.set(zmq::sockopt::heartbeat_timeout, kHeartbeatTimeoutMs);
  socket.set(zmq::sockopt::heartbeat_ttl, kHeartbeatTimeoutMs);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::maxmsgsize,
             static_cast<std::int64_t>(protocol::kMaxMessageBytes) + kFrameOverheadBytes);
  socket.set(zmq::sockopt::sndhwm, kQueueMessagesMax);
  socket.set(zmq::sockopt::rcvhwm, kQueueMessagesMax);
  // Only where it is asked for: IPv4 addresses are then shown as such.
  socket.set(zmq::sockopt::ipv6, address.host.find(':') != std::string::npos);
}

bool HasInput(const zmq::socket_t& socket) {
  return (socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

}  // namespace patchbay::control
