// One thread that waits for descriptors, sockets, timers and work posted by other threads.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>

#include <sys/types.h>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace patchbay::control {

/// A single-threaded event loop over epoll. Everything but Post and Stop is called from the
/// thread that runs it (or before it runs). Callbacks run one at a time and must not block.
class EventLoop {
 public:
  using Callback = std::function<void()>;
  using Id = std::uint64_t;  ///< number of a watch or timer; 0 is none; never reused

  /// `clock`, which its timers and NowMs go by, must outlive it; null: CLOCK_MONOTONIC. With a
  /// clock that stands still, wait with RunOnce: RunUntil would never be late.
  static StatusOr<std::unique_ptr<EventLoop>> Open(const Clock* clock = nullptr);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `on_readable` while `fd` is readable or hung up. The caller keeps the descriptor open
  /// until Cancel.
  StatusOr<Id> Watch(int fd, Callback on_readable);
  /// Watch for a source that may have work that its descriptor does not show (a ZeroMQ socket):
  /// `pending` is called before every wait, and `on_ready` as long as it returns true.
  StatusOr<Id> WatchSource(int fd, std::function<bool()> pending, Callback on_ready);
  Id After(TimeMs delay_ms, Callback once);
  Id Every(TimeMs period_ms, Callback each);
  /// Forgets a watch or timer; harmless for one that is gone. Allowed inside callbacks.
  void Cancel(Id id);
  /// Calls `on_signal` with the number of each of these signals and the process that sent it. They
  /// are blocked in this thread and in threads started after it: call it first thing in main.
  using OnSignal = std::function<void(int number, pid_t sender)>;
  StatusOr<Id> WatchSignals(std::initializer_list<int> signals, OnSignal on_signal);

  /// From any thread: runs `work` on the loop's thread.
  void Post(Callback work);
  /// From any thread: Run returns after the callbacks at hand.
  void Stop();

  /// Runs until Stop.
  void Run();
  /// Runs until `done` returns true or the time is up. Returns whether `done` did.
  bool RunUntil(const std::function<bool()>& done, TimeMs timeout_ms);
  /// One wait of at most `timeout_ms` and its callbacks.
  void RunOnce(TimeMs timeout_ms);

  TimeMs NowMs() const;

 private:
  struct State;
  explicit EventLoop(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patchbay::control
