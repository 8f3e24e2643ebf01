#include "runtime/wire/data/tls_listener.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/core/log.h"

namespace patchbay::data {
namespace {

constexpr int kAcceptedAtOnce = 32;
constexpr std::int64_t kFullPauseMs = 100;  ///< until a descriptor may be free again

}  // namespace

StatusOr<std::unique_ptr<TlsListener>> TlsListener::Open(const Options& options,
                                                         std::shared_ptr<const TlsContext> context,
                                                         Admit admit, DroppedPeers& dropped) {
  std::unique_ptr<TlsListener> opened(
      new TlsListener(options, std::move(context), std::move(admit), dropped));
  PB_ASSIGN_OR_RETURN(opened->listener_,
                      ListenTcp(options.address, options.ports, &opened->address_));
  opened->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
  if (!opened->stop_.valid()) return FromErrno("open", "event descriptor", errno);
  opened->thread_ = std::thread([raw = opened.get()] { raw->Run(); });
  return opened;
}

TlsListener::~TlsListener() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void TlsListener::Run() {
  while (Wait()) {
    const std::int64_t now = SteadyNowMs();
    for (auto it = unproven_.begin(); it != unproven_.end();) {
      const auto next = std::next(it);
      if (now >= it->deadline_ms) {
        Drop(it, "it has not proven the key in time");
      } else if (it->wait_events == 0) {
        Step(it);
      }
      it = next;
    }
  }
}

/// Waits until a connection can make progress, and sets wait_events = 0 on each that can. False at
/// the end.
bool TlsListener::Wait() {
  std::vector<pollfd> watched = {{stop_.get(), POLLIN, 0}};
  watched.push_back({is_full_ ? -1 : listener_.get(), POLLIN, 0});
  std::int64_t until = is_full_ ? SteadyNowMs() + kFullPauseMs : INT64_MAX;
  for (const Unproven& one : unproven_) {
    watched.push_back({one.channel->socket(), one.wait_events, 0});
    until = std::min(until, one.deadline_ms);
  }
  const std::int64_t left =
      until == INT64_MAX ? -1 : std::max<std::int64_t>(until - SteadyNowMs(), 0);
  poll(watched.data(), watched.size(), static_cast<int>(left));
  if (watched[0].revents != 0) return false;
  std::size_t i = 2;
  for (Unproven& one : unproven_) {
    if (watched[i++].revents != 0) one.wait_events = 0;
  }
  is_full_ = false;
  if (watched[1].revents != 0) AcceptWaiting();
  return true;
}

void TlsListener::AcceptWaiting() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    StatusOr<UniqueFd> socket = AcceptTcp(listener_.get());
    if (absl::IsNotFound(socket.status())) return;
    if (absl::IsResourceExhausted(socket.status())) is_full_ = true;
    if (!socket.ok()) return;
    std::string peer = PeerAddress(socket->get());
    auto channel = TlsChannel::Make(context_, *std::move(socket));
    if (!channel.ok()) return LogWarning(Describe(channel.status()));
    if (unproven_.size() >= kMaxUnproven) Drop(unproven_.begin(), "too many wait to prove the key");
    const std::int64_t deadline_ms = SteadyNowMs() + options_.proof_deadline_ms;
    unproven_.push_back({*std::move(channel), std::move(peer), deadline_ms, 0});
  }
}

void TlsListener::Step(std::list<Unproven>::iterator at) {
  const StatusOr<bool> proven = at->channel->Handshake();
  if (!proven.ok()) return Drop(at, MessageOf(proven.status()));
  at->wait_events = at->channel->wait_events();
  if (!*proven) return;
  std::unique_ptr<TlsChannel> channel = std::move(at->channel);
  unproven_.erase(at);
  admit_(std::move(channel));
}

/// A scan must not fill the log: the 1st, 2nd, 4th, 8th ... is told.
void TlsListener::Drop(std::list<Unproven>::iterator at, std::string_view cause) {
  const std::string& peer = at->peer;
  const std::uint64_t count = dropped_.Count(peer, cause);
  if (std::has_single_bit(count)) {
    LogWarning(StrCat("dropped a connection from ", peer, ": ", cause, " (", count, " so far)"));
  }
  unproven_.erase(at);
}

}  // namespace patchbay::data
