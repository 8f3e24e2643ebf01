#include "runtime/wire/control/event_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/os/file.h"

namespace patchbay::control {
namespace {

constexpr int kEventsAtOnce = 64;
constexpr TimeMs kLongestWaitMs = 60'000;

struct WatchEntry {
  int fd = -1;
  std::function<bool()> pending;  ///< empty for a plain descriptor
  EventLoop::Callback on_ready;
};

struct Timer {
  TimeMs due_ms = 0;
  TimeMs period_ms = 0;  ///< 0 = once
  EventLoop::Callback callback;
};

}  // namespace

struct EventLoop::State {
  UniqueFd epoll;
  UniqueFd wake;
  SteadyClock steady;
  const Clock* clock = &steady;
  Id last_id = 0;
  std::map<Id, std::shared_ptr<WatchEntry>> watches;
  std::vector<Id> sources;  ///< watches that can hold work their descriptor does not show
  std::map<Id, std::shared_ptr<Timer>> timers;
  std::map<std::pair<TimeMs, Id>, Id> due;
  std::vector<UniqueFd> signal_fds;
  std::atomic<bool> stopping{false};
  std::mutex posted_mu;
  std::vector<Callback> posted;  // guarded by posted_mu

  void Wake() {
    const std::uint64_t one = 1;
    // A full counter is readable already, which is all that is wanted.
    [[maybe_unused]] const auto written = write(wake.get(), &one, sizeof one);
  }
  void RunPosted();
  void RunTimers();
  bool RunSources();
  TimeMs WaitMs(TimeMs timeout_ms);
};

EventLoop::EventLoop(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventLoop::~EventLoop() = default;

StatusOr<std::unique_ptr<EventLoop>> EventLoop::Open(const Clock* clock) {
  auto state = std::make_unique<State>();
  if (clock != nullptr) state->clock = clock;
  state->epoll = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  state->wake = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->epoll.valid() || !state->wake.valid()) {
    return FromErrno("open event loop", "epoll", errno);
  }
  auto* raw = state.get();
  auto loop = std::unique_ptr<EventLoop>(new EventLoop(std::move(state)));
  PB_RETURN_IF_ERROR(loop->Watch(raw->wake.get(),
                                 [raw] {
                                   std::uint64_t count = 0;
                                   [[maybe_unused]] const auto n =
                                       read(raw->wake.get(), &count, sizeof count);
                                 })
                         .status());
  return loop;
}

StatusOr<EventLoop::Id> EventLoop::WatchSource(int fd, std::function<bool()> pending,
                                               Callback on_ready) {
  const Id id = ++state_->last_id;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLHUP | EPOLLERR;
  event.data.u64 = id;
  if (epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return FromErrno("watch", "descriptor", errno);
  }
  const bool is_source = static_cast<bool>(pending);
  state_->watches.emplace(
      id, std::make_shared<WatchEntry>(WatchEntry{fd, std::move(pending), std::move(on_ready)}));
  if (is_source) state_->sources.push_back(id);
  return id;
}

StatusOr<EventLoop::Id> EventLoop::Watch(int fd, Callback on_readable) {
  return WatchSource(fd, nullptr, std::move(on_readable));
}

EventLoop::Id EventLoop::After(TimeMs delay_ms, Callback once) {
  const Id id = ++state_->last_id;
  const TimeMs due_ms = NowMs() + std::max<TimeMs>(delay_ms, 0);
  state_->timers.emplace(id, std::make_shared<Timer>(Timer{due_ms, 0, std::move(once)}));
  state_->due.emplace(std::pair(due_ms, id), id);
  return id;
}

EventLoop::Id EventLoop::Every(TimeMs period_ms, Callback each) {
  const Id id = ++state_->last_id;
  const TimeMs period = std::max<TimeMs>(period_ms, 1);
  const TimeMs due_ms = NowMs() + period;
  state_->timers.emplace(id, std::make_shared<Timer>(Timer{due_ms, period, std::move(each)}));
  state_->due.emplace(std::pair(due_ms, id), id);
  return id;
}

void EventLoop::Cancel(Id id) {
  if (const auto watch = state_->watches.find(id); watch != state_->watches.end()) {
    epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, watch->second->fd, nullptr);
    state_->watches.erase(watch);
    std::erase(state_->sources, id);
  }
  if (const auto timer = state_->timers.find(id); timer != state_->timers.end()) {
    state_->due.erase({timer->second->due_ms, id});
    state_->timers.erase(timer);
  }
}

StatusOr<EventLoop::Id> EventLoop::WatchSignals(std::initializer_list<int> signals,
                                                OnSignal on_signal) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return FromErrno("block", "signals", error);
  }
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return FromErrno("open", "signalfd", errno);
  const int raw = fd.get();
  state_->signal_fds.push_back(std::move(fd));
  return Watch(raw, [raw, on_signal = std::move(on_signal)] {
    signalfd_siginfo received;
    while (read(raw, &received, sizeof received) == sizeof received) {
      on_signal(static_cast<int>(received.ssi_signo), static_cast<pid_t>(received.ssi_pid));
    }
  });
}

void EventLoop::Post(Callback work) {
  {
    const std::lock_guard lock(state_->posted_mu);
    state_->posted.push_back(std::move(work));
  }
  state_->Wake();
}

void EventLoop::Stop() {
  state_->stopping.store(true);
  state_->Wake();
}

TimeMs EventLoop::NowMs() const { return state_->clock->NowMs(); }

void EventLoop::State::RunPosted() {
  std::vector<Callback> work;
  {
    const std::lock_guard lock(posted_mu);
    work.swap(posted);
  }
  for (const auto& each : work) each();
}

void EventLoop::State::RunTimers() {
  const TimeMs now = clock->NowMs();
  while (!due.empty() && due.begin()->first.first <= now) {
    const Id id = due.begin()->second;
    due.erase(due.begin());
    const auto timer = timers.at(id);
    if (timer->period_ms > 0) {
      // A loop that was late does not catch up with a burst.
      timer->due_ms = std::max(timer->due_ms + timer->period_ms, now + 1);
      due.emplace(std::pair(timer->due_ms, id), id);
    } else {
      timers.erase(id);
    }
    timer->callback();
  }
}

bool EventLoop::State::RunSources() {
  bool any = false;
  for (const Id id : std::vector<Id>(sources)) {
    const auto it = watches.find(id);
    if (it == watches.end()) continue;
    const auto watch = it->second;
    if (watch->pending()) {
      any = true;
      watch->on_ready();
    }
  }
  return any;
}

TimeMs EventLoop::State::WaitMs(TimeMs timeout_ms) {
  if (stopping.load()) return 0;
  for (const Id id : sources) {
    if (watches.at(id)->pending()) return 0;
  }
  if (!due.empty()) {
    timeout_ms =
        std::min(timeout_ms, std::max<TimeMs>(due.begin()->first.first - clock->NowMs(), 0));
  }
  return std::min(timeout_ms, kLongestWaitMs);
}

void EventLoop::RunOnce(TimeMs timeout_ms) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(state_->epoll.get(), events.data(), kEventsAtOnce,
                               static_cast<int>(state_->WaitMs(timeout_ms)));
  for (int i = 0; i < count; ++i) {
    const auto it = state_->watches.find(events[static_cast<std::size_t>(i)].data.u64);
    if (it == state_->watches.end() || it->second->pending) continue;
    const auto watch = it->second;
    watch->on_ready();
  }
  state_->RunSources();
  state_->RunTimers();
  state_->RunPosted();
}

void EventLoop::Run() {
  while (!state_->stopping.exchange(false)) RunOnce(kLongestWaitMs);
}

bool EventLoop::RunUntil(const std::function<bool()>& done, TimeMs timeout_ms) {
  const TimeMs deadline = NowMs() + timeout_ms;
  while (!done()) {
    const TimeMs left = deadline - NowMs();
    if (left <= 0) return false;
    RunOnce(left);
  }
  return true;
}

}  // namespace patchbay::control
