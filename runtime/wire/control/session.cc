#include "runtime/wire/control/session.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/wire/protocol/codec.h"

namespace patchbay::control {
namespace {

constexpr TimeMs kMaxRetryMs = 5000;
constexpr TimeMs kTickMs = 50;

/// A refusal is an error even if its code is OK.
Status RefusalOf(Outcome outcome) {
  if (outcome.code == 0) outcome.code = static_cast<int>(absl::StatusCode::kInternal);
  return StatusOf(outcome);
}

struct Pending {
  std::string bytes;  ///< the encoded command: the same every time it is sent
  TimeMs deadline_ms = 0;
  TimeMs timeout_ms = 0;  ///< <= 0: none
  TimeMs repeat_at_ms = 0;
  TimeMs repeat_every_ms = kRequestRetryMs;
  Session::Answer answer;
};

class DealerSession final : public Session {
 public:
  DealerSession(EventLoop& loop, std::string address, Callbacks callbacks)
      : loop_(loop), address_(std::move(address)), callbacks_(std::move(callbacks)) {
    while (incarnation_ == 0) incarnation_ = RandomU64();
  }
  ~DealerSession() override { loop_.Cancel(tick_); }

  Status Open(const KeyFile& key);
  void Request(protocol::Body body, TimeMs timeout_ms, Answer answer) override;
  Status Tell(const protocol::Body& body) override;
  bool connected() const override { return socket_->connected(); }
  std::uint64_t incarnation() const override { return incarnation_; }
  Status state() const override { return connected() ? absl::OkStatus() : why_not_connected_; }

 private:
  void OnMessage(std::span<const std::byte> bytes);
  void OnConnected();
  void OnLost(const Status& why);
  void SendPending(Pending& pending);
  void Tick();
  void KeepTicking();
  void Finish(std::uint64_t request_id, StatusOr<protocol::Body> answer);
  Status Expired(const Pending& pending) const;

  EventLoop& loop_;
  std::string address_;
  Callbacks callbacks_;
  std::unique_ptr<ClientSocket> socket_;
  protocol::Encoder encoder_;
  protocol::Decoder decoder_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, Pending> pending_;
  EventLoop::Id tick_ = 0;
  Status why_not_connected_;
};

Status DealerSession::Open(const KeyFile& key) {
  why_not_connected_ = Unavailable("connect: ", address_, ": no answer yet");
  // The address is from the key file, written by the key's creator.
  const ClientSocket::Options options = {
      .address = key.address, .server_key = key.server_key, .pair = key.pair, .allow_public = true};
  PB_ASSIGN_OR_RETURN(
      socket_, ClientSocket::Connect(
                   loop_, options,
                   {.on_message = [this](std::span<const std::byte> bytes) { OnMessage(bytes); },
                    .on_connected = [this] { OnConnected(); },
                    .on_lost = [this](const Status& why) { OnLost(why); }}));
  return absl::OkStatus();
}

void DealerSession::OnConnected() {
  if (callbacks_.on_connected) callbacks_.on_connected();
  for (auto& [id, pending] : pending_) {
    pending.repeat_every_ms = kRequestRetryMs;
    SendPending(pending);
  }
}

void DealerSession::OnLost(const Status& why) {
  why_not_connected_ = why;
  if (callbacks_.on_lost) callbacks_.on_lost(why);
}

void DealerSession::OnMessage(std::span<const std::byte> bytes) {
  auto envelope = decoder_.Decode(bytes);
  if (!envelope.ok()) {
    // Garbage is no answer: the request is repeated. Another version is one, and final.
    if (decoder_.refused_request_id() != 0) {
      Finish(decoder_.refused_request_id(), envelope.status());
    }
    return;
  }
  if (envelope->request_id == 0) {
    if (callbacks_.on_fact) callbacks_.on_fact(std::move(envelope->body));
    return;
  }
  if (auto* failed = std::get_if<protocol::RequestFailed>(&envelope->body)) {
    Finish(envelope->request_id, RefusalOf(failed->outcome));
  } else {
    Finish(envelope->request_id, std::move(envelope->body));
  }
}

void DealerSession::Finish(std::uint64_t request_id, StatusOr<protocol::Body> answer) {
  const auto it = pending_.find(request_id);
  if (it == pending_.end()) return;  // the second answer to a repeated request
  const Answer callback = std::move(it->second.answer);
  pending_.erase(it);
  callback(std::move(answer));
}

void DealerSession::SendPending(Pending& pending) {
  pending.repeat_at_ms = loop_.NowMs() + pending.repeat_every_ms;
  pending.repeat_every_ms = std::min(2 * pending.repeat_every_ms, kMaxRetryMs);
  // A message that cannot be sent now is sent at the next repeat or connection.
  socket_->Send(AsBytes(pending.bytes)).IgnoreError();
}

void DealerSession::Request(protocol::Body body, TimeMs timeout_ms, Answer answer) {
  const std::uint64_t id = ++last_request_;
  const auto refuse = [&](Status why) {
    loop_.Post([answer = std::move(answer), why = std::move(why)] { answer(why); });
  };
  if (pending_.size() >= kMaxPendingRequests) {
    return refuse(ResourceExhausted("request: too many requests are waiting for an answer"));
  }
  const auto bytes = encoder_.Encode(
      {.sender_incarnation = incarnation_, .request_id = id, .body = std::move(body)});
  if (!bytes.ok()) return refuse(bytes.status());
  Pending& pending = pending_[id];
  pending.bytes = std::string(AsText(*bytes));
  pending.timeout_ms = timeout_ms;
  pending.deadline_ms = loop_.NowMs() + timeout_ms;
  pending.answer = std::move(answer);
  SendPending(pending);
  KeepTicking();
}

Status DealerSession::Tell(const protocol::Body& body) {
  PB_ASSIGN_OR_RETURN(
      const auto bytes,
      encoder_.Encode({.sender_incarnation = incarnation_, .request_id = 0, .body = body}));
  return socket_->Send(bytes);
}

void DealerSession::KeepTicking() {
  if (tick_ == 0) tick_ = loop_.Every(kTickMs, [this] { Tick(); });
}

Status DealerSession::Expired(const Pending& pending) const {
  const std::string waited =
      StrCat("no answer in ", static_cast<double>(pending.timeout_ms) / 1000, " s");
  if (!connected()) {
    if (why_not_connected_.code() == absl::StatusCode::kPermissionDenied) return why_not_connected_;
    return Unavailable("connect: ", address_, ": ", waited, " (", MessageOf(why_not_connected_),
                       ")");
  }
  return DeadlineExceeded("request: ", address_, ": ", waited);
}

void DealerSession::Tick() {
  const TimeMs now = loop_.NowMs();
  std::vector<std::uint64_t> expired;
  for (auto& [id, pending] : pending_) {
    if (pending.timeout_ms > 0 && now >= pending.deadline_ms) {
      expired.push_back(id);
    } else if (connected() && now >= pending.repeat_at_ms) {
      SendPending(pending);
    }
  }
  for (const auto id : expired) {
    const auto it = pending_.find(id);
    if (it != pending_.end()) Finish(id, Expired(it->second));
  }
  if (pending_.empty()) {
    loop_.Cancel(tick_);
    tick_ = 0;
  }
}

}  // namespace

StatusOr<std::unique_ptr<Session>> Session::Open(EventLoop& loop, const KeyFile& key,
                                                 Callbacks callbacks) {
  auto session = std::make_unique<DealerSession>(loop, key.address, std::move(callbacks));
  PB_RETURN_IF_ERROR(session->Open(key));
  return session;
}

RequestClient::RequestClient(std::unique_ptr<EventLoop> loop, std::unique_ptr<Session> session)
    : loop_(std::move(loop)), session_(std::move(session)) {}

RequestClient::~RequestClient() { session_.reset(); }

StatusOr<std::unique_ptr<RequestClient>> RequestClient::Open(const KeyFile& key, TimeMs timeout_ms,
                                                             const KeepWaiting& keep_waiting) {
  PB_ASSIGN_OR_RETURN(auto loop, EventLoop::Open());
  Status refused;
  PB_ASSIGN_OR_RETURN(
      auto session,
      Session::Open(*loop, key,
                    {.on_connected = {}, .on_lost = [](const Status&) {}, .on_fact = {}}));
  const TimeMs deadline_ms = loop->NowMs() + timeout_ms;
  while (!session->connected()) {
    if (absl::IsPermissionDenied(session->state())) return session->state();
    if (loop->NowMs() >= deadline_ms) {
      return Unavailable("connect: ", key.address, ": no answer in ",
                         static_cast<double>(timeout_ms) / 1000, " s");
    }
    if (keep_waiting && !keep_waiting()) {
      return Cancelled("connect: ", key.address, ": interrupted");
    }
    loop->RunOnce(std::min(kLookEveryMs, deadline_ms - loop->NowMs()));
  }
  return std::unique_ptr<RequestClient>(new RequestClient(std::move(loop), std::move(session)));
}

StatusOr<protocol::Body> RequestClient::Call(protocol::Body body, TimeMs timeout_ms,
                                             const KeepWaiting& keep_waiting) {
  // Shared, because the caller may have given up before the answer arrives.
  const auto answer = std::make_shared<std::optional<StatusOr<protocol::Body>>>();
  session_->Request(std::move(body), timeout_ms, [answer](StatusOr<protocol::Body> received) {
    answer->emplace(std::move(received));
  });
  while (!answer->has_value()) {
    if (!WaitsOn(keep_waiting)) return Cancelled("request: interrupted");
    loop_->RunOnce(keep_waiting ? kLookEveryMs : 1000);
    // The key was revoked since: waiting would not help.
    const Status state = session_->state();
    if (!answer->has_value() && absl::IsPermissionDenied(state)) return state;
  }
  return std::move(**answer);
}

bool RequestClient::WaitsOn(const KeepWaiting& keep_waiting) {
  if (!keep_waiting || keep_waiting()) return true;
  if (last_words_until_ms_ < 0) last_words_until_ms_ = loop_->NowMs() + kLastWordsMs;
  return session_->connected() && loop_->NowMs() < last_words_until_ms_;
}

}  // namespace patchbay::control
