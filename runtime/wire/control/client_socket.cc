#include "runtime/wire/control/client_socket.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include "runtime/core/hash.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/zmq_events.h"

namespace patchbay::control {
namespace {

constexpr std::size_t kClientMessagesAtOnce = 256;
constexpr TimeMs kFirstBackoffMs = 100, kMaxBackoffMs = 5000;
constexpr int kConnectRetryMs = 100, kConnectRetryMaxMs = 2000;
constexpr int kFlushMs = 200;  ///< messages sent just before the end still go out
/// Handshakes in a row that the other side ended without a word before we call it another server.
constexpr int kSilentRefusalsMax = 3;
constexpr int kClientEvents =
    ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED |
    ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

/// One DEALER at a time. After any loss the socket is replaced by a new one with another routing
/// id: messages queued for the lost connection are not delivered late, and failures that ZeroMQ
/// does not retry by itself (a refused key) are retried too.
class DealerSocket final : public ClientSocket {
 public:
  DealerSocket(EventLoop& loop, Options options, Address address, Callbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        address_(std::move(address)),
        callbacks_(std::move(callbacks)) {}
  ~DealerSocket() override {
    loop_.Cancel(retry_);
    if (socket_.handle() != nullptr) socket_.set(zmq::sockopt::linger, connected_ ? kFlushMs : 0);
    CloseSocket();
  }

  Status Open();
  Status Send(std::span<const std::byte> bytes) override;
  bool connected() const override { return connected_; }

 private:
  void Configure();
  void CloseSocket();
  void Drain();
  void Apply(const ConnectionEvent& event);
  /// Drops this socket and reports the reason; another one is made after the back-off.
  void Lose(Status why);
  Status Refused() const;
  /// Why a handshake was broken off without a word: by us after a silence, or by the other side.
  Status BrokenOff();

  EventLoop& loop_;
  Options options_;
  Address address_;
  Callbacks callbacks_;
  zmq::context_t context_{1};
  zmq::socket_t socket_;
  std::unique_ptr<ConnectionMonitor> monitor_;
  std::vector<EventLoop::Id> watches_;
  EventLoop::Id retry_ = 0;
  TimeMs backoff_ms_ = kFirstBackoffMs;
  TimeMs handshake_since_ = 0;
  int silent_refusals_ = 0;
  bool connected_ = false;
  bool told_unreachable_ = false;
};

Status DealerSocket::Open() {
  try {
    Configure();
  } catch (const zmq::error_t& error) {
    return Internal("connect: ", options_.address, ": ", error.what());
  }
  const auto watch = [this](int fd, std::function<bool()> pending) -> Status {
    PB_ASSIGN_OR_RETURN(const auto id,
                        loop_.WatchSource(fd, std::move(pending), [this] { Drain(); }));
    watches_.push_back(id);
    return absl::OkStatus();
  };
  PB_RETURN_IF_ERROR(watch(socket_.get(zmq::sockopt::fd), [this] { return HasInput(socket_); }));
  return watch(monitor_->fd(), [this] { return monitor_->pending(); });
}

void DealerSocket::Configure() {
  socket_ = zmq::socket_t(context_, zmq::socket_type::dealer);
  SetSharedOptions(socket_, address_);
  std::array<std::byte, 16> random;
  FillRandom(random);
  random[0] |= std::byte{1};  // a routing id may not start with a zero byte
  socket_.set(zmq::sockopt::routing_id, zmq::buffer(random));
  socket_.set(zmq::sockopt::handshake_ivl, options_.handshake_ms);
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::immediate, true);
  socket_.set(zmq::sockopt::reconnect_ivl, kConnectRetryMs);
  socket_.set(zmq::sockopt::reconnect_ivl_max, kConnectRetryMaxMs);
  socket_.set(zmq::sockopt::curve_serverkey, options_.server_key);
  socket_.set(zmq::sockopt::curve_publickey, options_.pair.public_key);
  socket_.set(zmq::sockopt::curve_secretkey, options_.pair.secret_key);
  monitor_ = std::make_unique<ConnectionMonitor>(context_, socket_, kClientEvents);
  socket_.connect(options_.address);
}

void DealerSocket::CloseSocket() {
  for (const auto id : watches_) loop_.Cancel(id);
  watches_.clear();
  monitor_.reset();
  socket_.close();
}

void DealerSocket::Drain() {
  // The end of the connection is believed only after its last messages were read.
  const auto events = monitor_->Drain();
  for (const auto& event : events) {
    if (event.event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) Apply(event);
  }
  for (std::size_t i = 0; i < kClientMessagesAtOnce && socket_.handle() != nullptr; ++i) {
    zmq::message_t frame;
    try {
      if (!socket_.recv(frame, zmq::recv_flags::dontwait)) break;
    } catch (const zmq::error_t&) {
      break;
    }
    if (frame.more()) continue;
    callbacks_.on_message(std::span(static_cast<const std::byte*>(frame.data()), frame.size()));
  }
  for (const auto& event : events) {
    if (socket_.handle() == nullptr) return;
    if (event.event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED) Apply(event);
  }
}

Status DealerSocket::Refused() const {
  return PermissionDenied("connect: ", options_.address,
                          ": the scheduler there has a different key from the key file's");
}

/// ZeroMQ reports both alike; but a server that cannot read our greeting closes at once.
Status DealerSocket::BrokenOff() {
  if (loop_.NowMs() - handshake_since_ >= options_.handshake_ms / 2) {
    silent_refusals_ = 0;
    return Unavailable("connect: ", options_.address, ": the scheduler there does not answer");
  }
  if (++silent_refusals_ >= kSilentRefusalsMax) return Refused();
  return Unavailable("connect: ", options_.address, ": the handshake was interrupted");
}

void DealerSocket::Apply(const ConnectionEvent& event) {
  switch (event.event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      connected_ = true;
      told_unreachable_ = false;
      silent_refusals_ = 0;
      backoff_ms_ = kFirstBackoffMs;
      callbacks_.on_connected();
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      Lose(PermissionDenied("connect: ", options_.address, ": the key is unknown or was revoked"));
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      Lose(Refused());
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      Lose(BrokenOff());
      return;
    case ZMQ_EVENT_CONNECTED:
      handshake_since_ = loop_.NowMs();
      return;
    case ZMQ_EVENT_DISCONNECTED:
      if (!connected_) return;  // a handshake failure says more
      Lose(Unavailable("connect: ", options_.address, ": the connection was lost"));
      return;
    case ZMQ_EVENT_CONNECT_RETRIED:
      if (std::exchange(told_unreachable_, true)) return;
      callbacks_.on_lost(Unavailable("connect: ", options_.address, ": nothing listens there"));
      return;
    default:
      return;
  }
}

void DealerSocket::Lose(Status why) {
  connected_ = false;
  CloseSocket();
  const auto jitter = static_cast<TimeMs>(RandomU64() % static_cast<std::uint64_t>(backoff_ms_));
  retry_ = loop_.After(backoff_ms_ / 2 + jitter / 2, [this] {
    if (const Status opened = Open(); !opened.ok()) Lose(opened);
  });
  backoff_ms_ = std::min(2 * backoff_ms_, kMaxBackoffMs);
  callbacks_.on_lost(why);
}

Status DealerSocket::Send(std::span<const std::byte> bytes) {
  if (!connected_) return Unavailable("send: ", options_.address, ": not connected");
  try {
    if (socket_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait)) {
      return absl::OkStatus();
    }
  } catch (const zmq::error_t& error) {
    return Unavailable("send: ", options_.address, ": ", error.what());
  }
  return ResourceExhausted("send: ", options_.address, ": the scheduler does not read");
}

}  // namespace

StatusOr<std::unique_ptr<ClientSocket>> ClientSocket::Connect(EventLoop& loop,
                                                              const Options& options,
                                                              Callbacks callbacks) {
  PB_ASSIGN_OR_RETURN(const Address address, ParseAddress(options.address));
  PB_RETURN_IF_ERROR(CheckKeyPair(options.pair));
  PB_RETURN_IF_ERROR(CheckKeyText(options.server_key, "server_key"));
  if (!options.allow_public && !IsPrivate(address)) {
    return PermissionDenied("connect: ", options.address, ": a public address");
  }
  if (address.kind == Address::Kind::kTcp && address.port == 0) {
    return InvalidArgument("connect: ", options.address, ": it has no port");
  }
  auto socket = std::make_unique<DealerSocket>(loop, options, address, std::move(callbacks));
  PB_RETURN_IF_ERROR(socket->Open());
  return socket;
}

}  // namespace patchbay::control
