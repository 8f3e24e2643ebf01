#include "runtime/wire/control/server_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <zmq.hpp>

#include "absl/container/flat_hash_map.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/admission.h"
#include "runtime/wire/control/zmq_events.h"

namespace patchbay::control {
namespace {

constexpr std::size_t kServerMessagesAtOnce = 256;
constexpr int kCloseLingerMs = 500;
constexpr int kBacklog = 1024;
/// Messages of one peer, read by ZeroMQ and not yet by us: each may have kMaxMessageBytes.
constexpr int kReceivedMessagesMax = 64;
// Stable in the library, but zmq.h shows it only together with the draft API.
constexpr int kZapEnforceDomain = 93;
constexpr int kServerEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                              ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                              ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                              ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

/// A received frame, with the connection's metadata.
struct RawMessage {
  std::string routing_id;
  zmq::message_t payload;
  std::string user;  ///< User-Id of the handshake: the key's name
  int fd = -1;       ///< descriptor of the connection
  bool well_formed = false;
};

/// Whether the peer closed its end before it was authenticated, for example a command that was
/// stopped while it connected, or a port check: it was not refused. A peer that left before ZeroMQ
/// accepted it may time out instead, like a silent peer.
bool LeftByItself(const ConnectionEvent& failure) {
  return failure.event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL &&
         (failure.value == EPIPE || failure.value == ECONNRESET);
}

struct Connection {
  Peer peer;
  std::string routing_id;
  std::string public_key;
  int fd = -1;
  std::uint64_t joined_at = 0;  ///< number of the drain it came with
};

class RouterSocket final : public ServerSocket {
 public:
  RouterSocket(EventLoop& loop, Options options, Callbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        unread_(options_.unread_bytes_max) {}
  ~RouterSocket() override;

  Status Open(const Address& address, AuthorizedKeys keys);

  Status Send(PeerId peer, std::span<const std::byte> bytes) override;
  void Disconnect(PeerId peer) override;
  void ReplaceKeys(AuthorizedKeys keys) override;
  void Pause(bool paused) override { paused_ = paused; }
  void StopAdmitting() override { admission_->Stop(); }
  const Peer* Find(PeerId peer) const override {
    const auto it = connections_.find(peer);
    return it == connections_.end() ? nullptr : &it->second.peer;
  }
  const std::string& address() const override { return address_; }
  Counters counters() const override { return counters_; }
  std::vector<DroppedPeer> dropped_peers() const override { return dropped_.List(); }

 private:
  Status Configure(const Address& address);
  Status WatchSockets();
  void Drain();
  bool ReceiveOne(RawMessage& message);
  void Deliver(RawMessage& message);
  /// The connection this message came over, made if it is new; nullptr when it may not speak.
  Connection* Identify(const RawMessage& message);
  Connection* Join(const RawMessage& message);
  void Apply(const std::vector<ConnectionEvent>& events);
  void CloseAt(int fd);
  /// Forgets it; the transport is closed when `cut`.
  void Forget(PeerId peer, bool cut, bool tell);
  void TellGone();

  EventLoop& loop_;
  Options options_;
  Callbacks callbacks_;
  zmq::context_t context_{1};
  DroppedPeers dropped_;
  std::unique_ptr<Admission> admission_;
  zmq::socket_t socket_;
  std::unique_ptr<ConnectionMonitor> monitor_;
  std::vector<EventLoop::Id> watches_;
  std::string address_;
  AuthorizedKeys keys_;
  PeerId last_peer_ = 0;
  std::uint64_t drains_ = 0;
  bool paused_ = false;
  absl::flat_hash_map<PeerId, Connection> connections_;
  absl::flat_hash_map<std::string, PeerId> by_routing_id_;
  absl::flat_hash_map<int, PeerId> by_fd_;
  std::vector<PeerId> gone_;  ///< on_gone is still to be called
  UnreadBytes unread_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Counters counters_;
};

RouterSocket::~RouterSocket() {
  *alive_ = false;
  for (const auto id : watches_) loop_.Cancel(id);
  if (socket_.handle() != nullptr) socket_.set(zmq::sockopt::linger, kCloseLingerMs);
  monitor_.reset();
  socket_.close();
  admission_.reset();
}

Status RouterSocket::Configure(const Address& address) {
  socket_ = zmq::socket_t(context_, zmq::socket_type::router);
  SetSharedOptions(socket_, address);
  socket_.set(zmq::sockopt::rcvhwm, kReceivedMessagesMax);
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::backlog, kBacklog);
  socket_.set(zmq::sockopt::router_mandatory, true);
  socket_.set(zmq::sockopt::router_handover, true);
  socket_.set(zmq::sockopt::curve_server, true);
  socket_.set(zmq::sockopt::curve_secretkey, options_.pair.secret_key);
  socket_.set(zmq::sockopt::zap_domain, kZapDomain);
  const int enforce = 1;  // without it a missing admission thread would let everybody in
  if (zmq_setsockopt(socket_.handle(), kZapEnforceDomain, &enforce, sizeof enforce) != 0) {
    return Internal("listen: this ZeroMQ cannot enforce admission");
  }
  monitor_ = std::make_unique<ConnectionMonitor>(context_, socket_, kServerEvents);
  try {
    socket_.bind(address.ToString());
  } catch (const zmq::error_t& error) {
    const std::string shown = StrCat("listen: ", address.ToString(), ": ");
    if (error.num() == EADDRINUSE) {
      return AlreadyExists(
          shown, "another process is listening there: give another --listen, or `patchbay down`");
    }
    if (error.num() == EACCES) return PermissionDenied(shown, "not allowed to use this port");
    if (error.num() == EADDRNOTAVAIL || error.num() == ENODEV) {
      return InvalidArgument(shown, "this machine has no such address");
    }
    return Internal(shown, error.what());
  }
  address_ = socket_.get(zmq::sockopt::last_endpoint);
  return absl::OkStatus();
}

Status RouterSocket::Open(const Address& address, AuthorizedKeys keys) {
  PB_RETURN_IF_ERROR(CheckAddressFamilies(address));
  keys_ = keys;
  try {
    // The admission thread answers before anything can connect.
    PB_ASSIGN_OR_RETURN(admission_, Admission::Start(context_, std::move(keys), dropped_));
    PB_RETURN_IF_ERROR(Configure(address));
    return WatchSockets();
  } catch (const zmq::error_t& error) {
    return Internal("listen: ", address.ToString(), ": ", error.what());
  }
}

Status RouterSocket::WatchSockets() {
  const auto watch = [this](int fd, std::function<bool()> pending) -> Status {
    PB_ASSIGN_OR_RETURN(const auto id,
                        loop_.WatchSource(fd, std::move(pending), [this] { Drain(); }));
    watches_.push_back(id);
    return absl::OkStatus();
  };
  // Polled while paused, too: polling clears the descriptor.
  PB_RETURN_IF_ERROR(
      watch(socket_.get(zmq::sockopt::fd), [this] { return HasInput(socket_) && !paused_; }));
  return watch(monitor_->fd(), [this] { return monitor_->pending(); });
}

bool RouterSocket::ReceiveOne(RawMessage& message) {
  zmq::message_t frame;
  if (!socket_.recv(frame, zmq::recv_flags::dontwait)) return false;
  message.routing_id = frame.to_string();
  int frames = 1;
  while (frame.more()) {
    zmq::message_t next;
    if (!socket_.recv(next, zmq::recv_flags::dontwait)) break;
    frame = std::move(next);
    if (++frames == 2) {
      const char* user = zmq_msg_gets(frame.handle(), "User-Id");
      message.user = user == nullptr ? "" : user;
      message.fd = zmq_msg_get(frame.handle(), ZMQ_SRCFD);
    }
    if (frames == 2 && !frame.more()) {
      message.payload = std::move(frame);
      message.well_formed = true;
      return true;
    }
  }
  return true;
}

// Handles the messages of this round first, then the monitor's events: the last messages of a
// connection count, and a descriptor that was closed and reused in the same round is distinguished
// by the peer that joined on it (Apply).
void RouterSocket::Drain() {
  ++drains_;
  try {
    for (std::size_t i = 0; i < kServerMessagesAtOnce && !paused_; ++i) {
      RawMessage message;
      if (!ReceiveOne(message)) break;
      Deliver(message);
    }
    Apply(monitor_->Drain());
  } catch (const zmq::error_t&) {
    // Only a context that ends throws here, and it is ours to end.
  }
  TellGone();
}

void RouterSocket::Deliver(RawMessage& message) {
  Connection* connection = Identify(message);
  if (connection == nullptr || !message.well_formed) {
    ++counters_.dropped_messages;
    return;
  }
  const Peer peer = connection->peer;
  callbacks_.on_message(peer, std::span(static_cast<const std::byte*>(message.payload.data()),
                                        message.payload.size()));
}

Connection* RouterSocket::Identify(const RawMessage& message) {
  const auto it = by_routing_id_.find(message.routing_id);
  if (it == by_routing_id_.end()) return Join(message);
  Connection& known = connections_.at(it->second);
  if (known.fd == message.fd && known.peer.key_name == message.user) return &known;
  // The routing id moved to another connection: the owner's next one, or that of a peer which
  // learnt the id. In both cases the former peer ends; only the owner may join again.
  const bool same_owner = known.peer.key_name == message.user;
  Forget(known.peer.id, /*cut=*/false, /*tell=*/true);
  if (same_owner) return Join(message);
  shutdown(message.fd, SHUT_RDWR);
  return nullptr;
}

Connection* RouterSocket::Join(const RawMessage& message) {
  const KnownKey* key = keys_.FindByName(message.user);
  if (key == nullptr || key->revoked || connections_.size() >= options_.peers_max) {
    if (message.fd >= 0) shutdown(message.fd, SHUT_RDWR);
    ++counters_.cut_peers;
    return nullptr;
  }
  if (const auto old = by_fd_.find(message.fd); old != by_fd_.end()) {
    Forget(old->second, /*cut=*/false, /*tell=*/true);
  }
  const PeerId id = ++last_peer_;
  Connection& connection = connections_[id];
  connection.peer = {id, key->name, key->role, key->read, key->write, key->team};
  connection.routing_id = message.routing_id;
  connection.public_key = key->public_key;
  connection.fd = message.fd;
  connection.joined_at = drains_;
  by_routing_id_[message.routing_id] = id;
  if (message.fd >= 0) by_fd_[message.fd] = id;
  return &connection;
}

void RouterSocket::Apply(const std::vector<ConnectionEvent>& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const int fd = static_cast<int>(events[i].value);
    switch (events[i].event) {
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        ++counters_.accepted;
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        ++counters_.refused_keys;
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        ++counters_.failed_handshakes;
        if (LeftByItself(events[i])) break;
        dropped_.Count("unknown", "it speaks no CURVE, or did not finish the handshake");
        break;
      case ZMQ_EVENT_DISCONNECTED: {
        const bool taken_again = std::any_of(events.begin() + static_cast<std::ptrdiff_t>(i),
                                             events.end(), [fd](const ConnectionEvent& later) {
                                               return later.event == ZMQ_EVENT_ACCEPTED &&
                                                      static_cast<int>(later.value) == fd;
                                             });
        const auto it = by_fd_.find(fd);
        if (it == by_fd_.end()) break;
        const bool joined_now = connections_.at(it->second).joined_at == drains_;
        if (!(taken_again && joined_now)) CloseAt(fd);
        break;
      }
      default:
        break;
    }
  }
}

void RouterSocket::CloseAt(int fd) { Forget(by_fd_.at(fd), /*cut=*/false, /*tell=*/true); }

void RouterSocket::Forget(PeerId peer, bool cut, bool tell) {
  const auto it = connections_.find(peer);
  if (it == connections_.end()) return;
  const Connection& connection = it->second;
  if (cut) {
    ++counters_.cut_peers;
    // ZeroMQ has no call that ends one peer; ending its transport does. Should the descriptor have
    // been closed and reused meanwhile, the other connection only has to reconnect.
    if (connection.fd >= 0) shutdown(connection.fd, SHUT_RDWR);
  }
  by_routing_id_.erase(connection.routing_id);
  if (const auto owner = by_fd_.find(connection.fd);
      owner != by_fd_.end() && owner->second == peer) {
    by_fd_.erase(owner);
  }
  connections_.erase(it);
  unread_.Forget(peer);
  if (!tell) return;
  gone_.push_back(peer);
  if (gone_.size() == 1) {
    loop_.Post([this, alive = alive_] {
      if (*alive) TellGone();
    });
  }
}

void RouterSocket::TellGone() {
  while (!gone_.empty()) {
    const std::vector<PeerId> now = std::exchange(gone_, {});
    for (const PeerId peer : now) callbacks_.on_gone(peer);
  }
}

Status DoesNotRead() {
  return ResourceExhausted("send: peer: disconnected: it does not read its messages");
}

Status RouterSocket::Send(PeerId peer, std::span<const std::byte> bytes) {
  const auto it = connections_.find(peer);
  if (it == connections_.end()) return NotFound("send: peer: disconnected");
  const std::string& id = it->second.routing_id;
  try {
    if (socket_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
      socket_.send(zmq::buffer(bytes.data(), bytes.size()), zmq::send_flags::dontwait);
      const PeerId cut = unread_.Add(peer, it->second.fd, bytes.size());
      if (cut != 0) Forget(cut, /*cut=*/true, /*tell=*/true);
      return cut == peer ? DoesNotRead() : absl::OkStatus();
    }
  } catch (const zmq::error_t&) {
    // EHOSTUNREACH: disconnected, but not yet reported by the monitor.
    Forget(peer, /*cut=*/false, /*tell=*/true);
    return NotFound("send: peer: disconnected");
  }
  Forget(peer, /*cut=*/true, /*tell=*/true);
  return DoesNotRead();
}

void RouterSocket::Disconnect(PeerId peer) { Forget(peer, /*cut=*/true, /*tell=*/false); }

void RouterSocket::ReplaceKeys(AuthorizedKeys keys) {
  admission_->ReplaceKeys(keys);
  keys_ = std::move(keys);
  std::vector<PeerId> ended;
  for (const auto& [id, connection] : connections_) {
    const KnownKey* key = keys_.FindByName(connection.peer.key_name);
    const bool same =
        key != nullptr && !key->revoked && key->role == connection.peer.role &&
        key->public_key == connection.public_key && key->read == connection.peer.read_prefixes &&
        key->write == connection.peer.write_prefixes && key->team == connection.peer.team;
    if (!same) ended.push_back(id);
  }
  for (const PeerId id : ended) Forget(id, /*cut=*/true, /*tell=*/true);
}

}  // namespace

StatusOr<std::unique_ptr<ServerSocket>> ServerSocket::Bind(EventLoop& loop, Options options,
                                                           AuthorizedKeys keys,
                                                           Callbacks callbacks) {
  PB_ASSIGN_OR_RETURN(const Address address, ParseAddress(options.address));
  PB_RETURN_IF_ERROR(CheckKeyPair(options.pair));
  if (!options.allow_public && !IsPrivate(address)) {
    return PermissionDenied("listen: ", options.address,
                            ": a public or wildcard address; name it with --listen to allow it");
  }
  auto socket = std::make_unique<RouterSocket>(loop, std::move(options), std::move(callbacks));
  PB_RETURN_IF_ERROR(socket->Open(address, std::move(keys)));
  return socket;
}

}  // namespace patchbay::control
