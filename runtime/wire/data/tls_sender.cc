// The worker's end of delivery over TLS: a connection a trainer, used by one Send at a time.

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/tls_channel.h"

namespace patchbay::data {
namespace {

/// Below a lease's length, so that the scheduler hears why, and keeps this worker off that trainer.
constexpr std::int64_t kConnectMs = 5'000;
/// Connections kept; the least recently used one is closed first.
constexpr std::size_t kMaxTrainers = 64;

class TlsSender final : public RemoteSender {
 public:
  explicit TlsSender(const Options& options) : options_(options) {}

  Status Send(const RemoteTarget& target, ShardHeader header, Payload payload) override;
  void Forget(const std::string& address) override;
  std::string Transport() const override;

 private:
  struct Link {
    explicit Link(RemoteTarget to) : target(std::move(to)) {}
    const RemoteTarget target;
    std::timed_mutex busy;
    std::mutex channel_mu;
    std::shared_ptr<TlsChannel> channel;  ///< guarded by channel_mu; used under busy

    std::shared_ptr<TlsChannel> Channel() {
      const std::lock_guard lock(channel_mu);
      return channel;
    }
    void SetChannel(std::shared_ptr<TlsChannel> now) {
      const std::lock_guard lock(channel_mu);
      channel = std::move(now);
    }
  };

  std::shared_ptr<Link> LinkTo(const RemoteTarget& target);
  StatusOr<std::shared_ptr<TlsChannel>> Open(Link& link, std::int64_t deadline_ms);
  Status SendOver(TlsChannel& channel, const RemoteTarget& target, const ShardHeader& header,
                  Payload payload, std::int64_t deadline_ms);

  const Options options_;
  mutable std::mutex mu_;
  std::list<std::shared_ptr<Link>> links_;  ///< guarded by mu_; lately used first
  bool has_sent_ = false;                   ///< guarded by mu_
};

std::shared_ptr<TlsSender::Link> TlsSender::LinkTo(const RemoteTarget& target) {
  const std::lock_guard lock(mu_);
  const auto known = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& link) { return link->target == target; });
  if (known != links_.end()) {
    links_.splice(links_.begin(), links_, known);
  } else {
    links_.push_front(std::make_shared<Link>(target));
    if (links_.size() > kMaxTrainers) links_.pop_back();  // closed once its last Send is over
  }
  return links_.front();
}

StatusOr<std::shared_ptr<TlsChannel>> TlsSender::Open(Link& link, std::int64_t deadline_ms) {
  if (std::shared_ptr<TlsChannel> open = link.Channel(); open != nullptr && !open->PeerGone()) {
    return open;
  }
  link.SetChannel(nullptr);
  const RemoteTarget& target = link.target;
  deadline_ms = std::min(deadline_ms, SteadyNowMs() + kConnectMs);
  PB_ASSIGN_OR_RETURN(const std::string text, AddressUnder(kTlsScheme, target.address));
  PB_ASSIGN_OR_RETURN(const TlsAddress to, ParseTlsAddress(text));
  PB_ASSIGN_OR_RETURN(const TlsKey key,
                      DeriveTlsKey(target.secret, {target.stream, target.rank, to.incarnation}));
  PB_ASSIGN_OR_RETURN(auto context, TlsContext::Make(TlsContext::Side::kSender, key));
  PB_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTcp(to.host_port, deadline_ms));
  PB_ASSIGN_OR_RETURN(
      std::shared_ptr<TlsChannel> channel,
      TlsChannel::Make(std::move(context), std::move(socket), options_.records_per_key));
  link.SetChannel(channel);  // so that Forget ends what waits for an answer
  for (;;) {
    const StatusOr<bool> proven = channel->Handshake();
    Status waited = proven.status();
    if (proven.ok() && *proven) return channel;
    if (proven.ok()) waited = AwaitSocket(channel->socket(), channel->wait_events(), deadline_ms);
    if (waited.ok()) continue;
    link.SetChannel(nullptr);
    return Unavailable("connect to trainer: ", to.host_port, ": ", MessageOf(waited));
  }
}

Status TlsSender::SendOver(TlsChannel& channel, const RemoteTarget& target,
                           const ShardHeader& header, Payload payload, std::int64_t deadline_ms) {
  std::array<std::byte, kShardHeaderBytes> encoded;
  EncodeShardHeader(header, target.secret, encoded);
  PB_RETURN_IF_ERROR(channel.Write(encoded, deadline_ms));
  for (const std::span<const std::byte> array : payload) {
    PB_RETURN_IF_ERROR(channel.Write(array, deadline_ms));
  }
  std::array<std::byte, kShardAnswerBytes> answer;
  return channel.Read(answer, deadline_ms).ok() ? DecodeShardAnswer(answer, header.lease)
                                                : Unavailable("the trainer did not answer");
}

Status TlsSender::Send(const RemoteTarget& target, ShardHeader header, Payload payload) {
  PB_RETURN_IF_ERROR(SealHeader(header, payload));
  header.array = kEveryArray;
  const std::string doing = StrCat("send shard ", header.shard.ToString());
  const std::int64_t deadline_ms = SteadyNowMs() + options_.timeout_ms;
  const std::shared_ptr<Link> link = LinkTo(target);
  const std::unique_lock busy(link->busy, std::chrono::milliseconds(options_.timeout_ms));
  if (!busy.owns_lock()) return Unavailable(doing, ": the connection to the trainer is busy");
  auto channel = Open(*link, deadline_ms);
  if (!channel.ok()) return Annotate(channel.status(), doing);
  Status sent = SendOver(**channel, target, header, payload, deadline_ms);
  const bool is_answer =
      sent.ok() || absl::IsFailedPrecondition(sent) || absl::IsAlreadyExists(sent);
  if (!is_answer) {
    (*channel)->Shut();
    link->SetChannel(nullptr);
    return Unavailable(doing, ": ", sent.message());
  }
  const std::lock_guard lock(mu_);
  has_sent_ = true;
  return Annotate(sent, doing);
}

void TlsSender::Forget(const std::string& address) {
  std::list<std::shared_ptr<Link>> forgotten;
  {
    const std::lock_guard lock(mu_);
    for (auto it = links_.begin(); it != links_.end();) {
      const auto at = it++;
      if ((*at)->target.address == address) forgotten.splice(forgotten.end(), links_, at);
    }
  }
  for (const auto& link : forgotten) {
    if (const auto channel = link->Channel(); channel != nullptr) channel->Shut();
  }
}

std::string TlsSender::Transport() const {
  const std::lock_guard lock(mu_);
  return has_sent_ ? StrCat("tls/", kTlsSuite) : std::string();
}

}  // namespace

std::unique_ptr<RemoteSender> MakeTlsSender(const RemoteSender::Options& options) {
  return std::make_unique<TlsSender>(options);
}

}  // namespace patchbay::data
