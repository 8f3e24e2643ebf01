#include "runtime/wire/control/admission.h"

#include <array>
#include <utility>
#include <vector>

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace patchbay::control {
namespace {

constexpr char kZapAddress[] = "inproc://zeromq.zap.01";
constexpr char kStopAddress[] = "inproc://patchbay.admission.stop";
constexpr std::size_t kMaxFrames = 16;

/// A whole multipart message; frames past kMaxFrames are read and dropped.
std::vector<zmq::message_t> ReceiveAll(zmq::socket_t& socket) {
  std::vector<zmq::message_t> frames;
  for (;;) {
    zmq::message_t frame;
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) return {};
    const bool more = frame.more();
    if (frames.size() < kMaxFrames) frames.push_back(std::move(frame));
    if (!more) return frames;
  }
}

void SendFrames(zmq::socket_t& socket, std::initializer_list<std::string_view> frames) {
  std::size_t left = frames.size();
  for (const auto frame : frames) {
    const auto flags = --left > 0 ? zmq::send_flags::sndmore : zmq::send_flags::none;
    socket.send(zmq::message_t(frame.data(), frame.size()), flags);
  }
}

/// The 32 bytes as Z85.
std::string ToZ85(const zmq::message_t& key) {
  std::array<char, kKeyTextLength + 1> text{};
  if (zmq_z85_encode(text.data(), static_cast<const std::uint8_t*>(key.data()), key.size()) ==
      nullptr) {
    return "";
  }
  return text.data();
}

/// The peer's address for DroppedPeers. For a Unix socket ZeroMQ gives ":uid:gid:pid".
std::string PlaceOf(std::string_view address) {
  if (address.empty() || address.front() == ':') return "this machine";
  return StrCat("[", address, "]");
}

}  // namespace

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

Admission::Admission(zmq::socket_t requests, zmq::socket_t stop_sender, zmq::socket_t stop_receiver,
                     AuthorizedKeys keys, DroppedPeers& dropped)
    : requests_(std::move(requests)),
      stop_sender_(std::move(stop_sender)),
      stop_receiver_(std::move(stop_receiver)),
      keys_(std::move(keys)),
      dropped_(dropped) {}

StatusOr<std::unique_ptr<Admission>> Admission::Start(zmq::context_t& context, AuthorizedKeys keys,
                                                      DroppedPeers& dropped) {
  try {
    zmq::socket_t requests(context, zmq::socket_type::rep);
    requests.set(zmq::sockopt::linger, 0);
    requests.bind(kZapAddress);
    zmq::socket_t stop_receiver(context, zmq::socket_type::pair);
    stop_receiver.bind(kStopAddress);
    zmq::socket_t stop_sender(context, zmq::socket_type::pair);
    stop_sender.set(zmq::sockopt::linger, 0);
    stop_sender.connect(kStopAddress);
    std::unique_ptr<Admission> admission(new Admission(std::move(requests), std::move(stop_sender),
                                                       std::move(stop_receiver), std::move(keys),
                                                       dropped));
    admission->thread_ = std::thread([raw = admission.get()] { raw->Run(); });
    return admission;
  } catch (const zmq::error_t& error) {
    return Internal("start admission: ", error.what());
  }
}

Admission::~Admission() { Stop(); }

void Admission::Stop() {
  if (!thread_.joinable()) return;
  try {
    stop_sender_.send(zmq::message_t(), zmq::send_flags::none);
  } catch (const zmq::error_t&) {
    // The context is gone, and with it the thread's wait.
  }
  thread_.join();
}

void Admission::ReplaceKeys(AuthorizedKeys keys) {
  const std::lock_guard lock(keys_mu_);
  keys_ = std::move(keys);
}

StatusOr<std::string> Admission::NameOf(const std::string& public_key) {
  const std::lock_guard lock(keys_mu_);
  const KnownKey* key = keys_.FindByPublicKey(public_key);
  if (key == nullptr) return PermissionDenied("its key is not known");
  if (!key->revoked) return key->name;
  return PermissionDenied("its key, ", key->name, ", was revoked");
}

bool Admission::AnswerOne() {
  // version, request id, domain, address, routing id, mechanism, then the mechanism's credentials
  const auto frames = ReceiveAll(requests_);
  if (frames.size() < 2) return false;
  const auto text = [&](std::size_t i) {
    return i < frames.size() ? frames[i].to_string_view() : std::string_view();
  };
  StatusOr<std::string> name = PermissionDenied("it has no CURVE key");
  if (frames.size() == 7 && text(0) == "1.0" && text(2) == kZapDomain && text(5) == "CURVE" &&
      frames[6].size() == 32) {
    name = NameOf(ToZ85(frames[6]));
  }
  if (name.ok()) {
    SendFrames(requests_, {"1.0", text(1), "200", "OK", *name, ""});
  } else {
    dropped_.Count(PlaceOf(text(3)), MessageOf(name.status()));
    SendFrames(requests_, {"1.0", text(1), "400", "key is not known or was revoked", "", ""});
  }
  return true;
}

void Admission::Run() {
  try {
    std::array<zmq::pollitem_t, 2> items = {
        zmq::pollitem_t{requests_.handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{stop_receiver_.handle(), 0, ZMQ_POLLIN, 0}};
    for (;;) {
      zmq::poll(items.data(), items.size(), std::chrono::milliseconds(-1));
      if (items[1].revents != 0) break;
      while (AnswerOne()) {
      }
    }
  } catch (const zmq::error_t&) {
    // The context ended: so does admission.
  }
  requests_.close();
}

}  // namespace patchbay::control
