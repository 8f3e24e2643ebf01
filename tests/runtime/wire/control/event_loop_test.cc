#include "runtime/wire/control/event_loop.h"

#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/os/file.h"
#include "tests/runtime/wire/control/moved_clock.h"

namespace patchbay::control {
namespace {

constexpr TimeMs kLoopPatienceMs = 10'000;

std::unique_ptr<EventLoop> MakeLoop() {
  auto loop = EventLoop::Open();
  EXPECT_TRUE(loop.ok());
  return *std::move(loop);
}

TEST(EventLoop, RunsTimersInTheOrderTheyFallDue) {
  const auto loop = MakeLoop();
  std::vector<int> ran;
  loop->After(20, [&] { ran.push_back(2); });
  loop->After(1, [&] { ran.push_back(1); });
  const auto cancelled = loop->After(5, [&] { ran.push_back(9); });
  loop->Cancel(cancelled);
  EXPECT_TRUE(loop->RunUntil([&] { return ran.size() == 2; }, kLoopPatienceMs));
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(EventLoop, PeriodicTimerMayCancelItself) {
  const auto loop = MakeLoop();
  int ran = 0;
  EventLoop::Id id = 0;
  id = loop->Every(1, [&] {
    if (++ran == 3) loop->Cancel(id);
  });
  ASSERT_TRUE(loop->RunUntil([&] { return ran == 3; }, kLoopPatienceMs));
  bool later = false;
  loop->After(30, [&] { later = true; });
  EXPECT_TRUE(loop->RunUntil([&] { return later; }, kLoopPatienceMs));
  EXPECT_EQ(ran, 3);
}

TEST(EventLoop, ALateLoopDoesNotCatchUpWithABurst) {
  MovedClock clock;
  const auto loop = *EventLoop::Open(&clock);
  int ran = 0;
  loop->Every(10, [&] { ++ran; });
  clock.Move(1'000);
  loop->RunOnce(0);
  EXPECT_EQ(ran, 1);
  clock.Move(1);
  loop->RunOnce(0);
  EXPECT_EQ(ran, 2);
}

TEST(EventLoop, APeriodOfNothingIsAMillisecond) {
  MovedClock clock;
  const auto loop = *EventLoop::Open(&clock);
  int ran = 0;
  loop->Every(0, [&] { ++ran; });
  for (int expected = 1; expected <= 3; ++expected) {
    clock.Move(1);
    loop->RunOnce(0);
    EXPECT_EQ(ran, expected);
  }
}

TEST(EventLoop, CallsForReadableDescriptorsUntilCancelled) {
  const auto loop = MakeLoop();
  const UniqueFd fd(eventfd(3, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
  int reads = 0;
  const auto id = loop->Watch(fd.get(), [&] {
    std::uint64_t value = 0;
    if (read(fd.get(), &value, sizeof value) == sizeof value) ++reads;
  });
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(loop->RunUntil([&] { return reads == 3; }, kLoopPatienceMs));
  loop->Cancel(*id);
  const std::uint64_t one = 1;
  ASSERT_EQ(write(fd.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  loop->RunOnce(0);
  EXPECT_EQ(reads, 3);
}

TEST(EventLoop, AsksASourceForWorkItsDescriptorDoesNotShow) {
  const auto loop = MakeLoop();
  const UniqueFd quiet(eventfd(0, EFD_CLOEXEC));
  int left = 5, done = 0;
  ASSERT_TRUE(loop->WatchSource(
                      quiet.get(), [&] { return left > 0; },
                      [&] {
                        --left;
                        ++done;
                      })
                  .ok());
  EXPECT_TRUE(loop->RunUntil([&] { return done == 5; }, kLoopPatienceMs));
}

TEST(EventLoop, RunsWhatOtherThreadsPost) {
  const auto loop = MakeLoop();
  const auto home = std::this_thread::get_id();
  int ran = 0;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      loop->Post([&] {
        EXPECT_EQ(std::this_thread::get_id(), home);
        ++ran;
      });
    }
    loop->Post([&] { loop->Stop(); });
  });
  loop->Run();
  other.join();
  EXPECT_EQ(ran, 100);
}

TEST(EventLoop, HandsSignalsToTheLoop) {
  const auto loop = MakeLoop();
  int seen = 0;
  pid_t by = 0;
  const auto watch = [&](int signal, pid_t sender) { seen = signal, by = sender; };
  ASSERT_TRUE(loop->WatchSignals({SIGUSR1}, watch).ok());
  ASSERT_EQ(raise(SIGUSR1), 0);
  EXPECT_TRUE(loop->RunUntil([&] { return seen != 0; }, kLoopPatienceMs));
  EXPECT_EQ(seen, SIGUSR1);
  EXPECT_EQ(by, getpid());
}

}  // namespace
}  // namespace patchbay::control
