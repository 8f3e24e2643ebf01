// Requests and facts over a client socket, for agents, workers, trainers and commands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/control/client_socket.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/protocol/envelope.h"

namespace patchbay::control {

inline constexpr std::size_t kMaxPendingRequests = 4096;
inline constexpr TimeMs kRequestRetryMs = 1000;  ///< first repeat; doubles up to five seconds

/// A session with the scheduler: requests are repeated, with the same request id, until their
/// answer or deadline; a lost connection is restored by itself. Lives on its loop's thread.
class Session {
 public:
  /// The answer (never RequestFailed: that arrives as its status), or DeadlineExceeded, Unavailable
  /// or PermissionDenied with the reason why there was no connection.
  using Answer = std::function<void(StatusOr<protocol::Body>)>;

  struct Callbacks {
    /// Connected, first time or again: register now. Requests still pending are repeated by
    /// themselves, after this call.
    std::function<void()> on_connected;
    std::function<void(const Status&)> on_lost;
    /// A fact without a request (request id 0).
    std::function<void(protocol::Body)> on_fact;
  };

  static StatusOr<std::unique_ptr<Session>> Open(EventLoop& loop, const KeyFile& key,
                                                 Callbacks callbacks);
  virtual ~Session() = default;

  /// Calls `answer` exactly once, never from inside Request. timeout_ms <= 0: no deadline.
  virtual void Request(protocol::Body body, TimeMs timeout_ms, Answer answer) = 0;
  /// No answer wanted (heartbeats, counts). Dropped while not connected: Unavailable.
  virtual Status Tell(const protocol::Body& body) = 0;
  virtual bool connected() const = 0;
  /// Random per session: the sender_incarnation of its messages.
  virtual std::uint64_t incarnation() const = 0;
  /// Why it is not connected; OK when it is.
  virtual Status state() const = 0;
};

/// A session for programs that send one request at a time and wait for the answer; it runs a loop
/// of its own.
class RequestClient {
 public:
  /// Called about every kLookEveryMs during a wait, which ends once it returns false; may be empty.
  using KeepWaiting = std::function<bool()>;

  /// Connects and waits for the handshake. `connect: tcp://...: no answer in 5 s` (Unavailable),
  /// PermissionDenied `key is not known or was revoked`, or Cancelled once `keep_waiting` returns
  /// false.
  static StatusOr<std::unique_ptr<RequestClient>> Open(const KeyFile& key, TimeMs timeout_ms,
                                                       const KeepWaiting& keep_waiting = {});
  ~RequestClient();

  /// Cancelled when there is no answer and `keep_waiting` returns false. After its first false, all
  /// calls together wait kLastWordsMs more: a job can still be cancelled, and a lost scheduler does
  /// not delay the end.
  StatusOr<protocol::Body> Call(protocol::Body body, TimeMs timeout_ms,
                                const KeepWaiting& keep_waiting = {});
  static constexpr TimeMs kLookEveryMs = 100;
  static constexpr TimeMs kLastWordsMs = 400;

  /// Call and the fact that is its reply; Internal when the scheduler answered with another.
  template <typename Fact>
  StatusOr<Fact> CallFor(protocol::Body body, TimeMs timeout_ms) {
    auto answer = Call(std::move(body), timeout_ms);
    if (!answer.ok()) return answer.status();
    if (auto* fact = std::get_if<Fact>(&*answer)) return std::move(*fact);
    return Internal("request: unexpected answer type");
  }

 private:
  RequestClient(std::unique_ptr<EventLoop> loop, std::unique_ptr<Session> session);
  bool WaitsOn(const KeepWaiting& keep_waiting);

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Session> session_;
  TimeMs last_words_until_ms_ = -1;  ///< -1: keep_waiting has not returned false
};

}  // namespace patchbay::control
