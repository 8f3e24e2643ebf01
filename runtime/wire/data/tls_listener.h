// Accepts senders: handles connections that have not proven the stream's key yet, so that receiving
// threads do not.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "runtime/core/status.h"
#include "runtime/os/dropped_peers.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/tls_channel.h"

namespace patchbay::data {

/// Connections without a proof at a time; one more pushes out the oldest, so that a crowd that
/// holds connections open does not keep a sender out.
inline constexpr std::size_t kMaxUnproven = 64;
/// Time in which a connection has to prove the key.
inline constexpr std::int64_t kKeyProofDeadlineMs = 5'000;

/// Listens, and hands over connections whose peer has the key.
class TlsListener {
 public:
  struct Options {
    std::string address;  ///< numeric, of this node
    PortRange ports;
    std::int64_t proof_deadline_ms = kKeyProofDeadlineMs;
  };
  /// Called on the listener's thread; takes the connection, or lets it go.
  using Admit = std::function<void(std::unique_ptr<TlsChannel>)>;
  /// `dropped` records peers that ended without a proof; it must outlive the listener.
  static StatusOr<std::unique_ptr<TlsListener>> Open(const Options& options,
                                                     std::shared_ptr<const TlsContext> context,
                                                     Admit admit, DroppedPeers& dropped);
  /// Closes unproven connections and joins the thread.
  ~TlsListener();

  /// "ip:port".
  const std::string& address() const { return address_; }

 private:
  struct Unproven {
    std::unique_ptr<TlsChannel> channel;
    std::string peer;  ///< its address, asked for while it was surely there
    std::int64_t deadline_ms = 0;
    short wait_events = 0;
  };
  TlsListener(const Options& options, std::shared_ptr<const TlsContext> context, Admit admit,
              DroppedPeers& dropped)
      : options_(options),
        context_(std::move(context)),
        admit_(std::move(admit)),
        dropped_(dropped) {}
  void Run();
  bool Wait();
  void AcceptWaiting();
  void Step(std::list<Unproven>::iterator at);
  void Drop(std::list<Unproven>::iterator at, std::string_view cause);

  const Options options_;
  const std::shared_ptr<const TlsContext> context_;
  const Admit admit_;
  DroppedPeers& dropped_;
  std::string address_;
  UniqueFd listener_;
  UniqueFd stop_;
  std::list<Unproven> unproven_;  ///< the oldest first
  bool is_full_ = false;          ///< the process had no descriptor left
  std::thread thread_;
};

}  // namespace patchbay::data
