// Real children in every state, on a clock the test moves.
#include "workers/process/heartbeat_watch.h"

#include <csignal>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::workers {
namespace {

constexpr long kStep = HeartbeatWatch::kLookEveryMs;

class HeartbeatWatchTest : public testing::Test {
 protected:
  void SetUp() override { watch_.Start(now_); }
  void TearDown() override {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  }

  /// A child in the state that `does` leaves it in.
  template <typename Does>
  void StartChildThat(Does does) {
    child_ = fork();
    if (child_ == 0) {
      does();
      _exit(0);
    }
  }
  void StartStopped() {
    StartChildThat([] { raise(SIGSTOP); });
    waitpid(child_, nullptr, WUNTRACED);
  }
  char State() const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    return stat[stat.rfind(')') + 2];
  }
  /// How long it is silent before it is lost; -1: not within `limit`.
  long LostAfter(long limit, long step = kStep) {
    for (long silent = step; silent <= limit; silent += step) {
      now_ += step;
      if (watch_.Lost(child_, now_)) return silent;
    }
    return -1;
  }

  HeartbeatWatch watch_;
  long now_ = 1'000'000;
  pid_t child_ = 0;
};

TEST_F(HeartbeatWatchTest, AStoppedChildIsLostAfterItsSilence) {
  StartStopped();
  watch_.Beat(now_);
  EXPECT_EQ(LostAfter(60'000), HeartbeatWatch::kSilentMs);
}

TEST_F(HeartbeatWatchTest, AChildThatBeatsIsNotLost) {
  StartStopped();
  for (int i = 0; i < 100; ++i) {
    watch_.Beat(now_);
    EXPECT_EQ(LostAfter(HeartbeatWatch::kSilentMs - kStep), -1);
  }
}

TEST_F(HeartbeatWatchTest, AChildThatStartsHasLonger) {
  StartStopped();
  EXPECT_EQ(LostAfter(60'000), HeartbeatWatch::kStartSilentMs);
}

TEST_F(HeartbeatWatchTest, AnotherStartForgetsTheHeartbeatsBefore) {
  StartStopped();
  watch_.Beat(now_);
  watch_.Start(now_);
  EXPECT_EQ(LostAfter(60'000), HeartbeatWatch::kStartSilentMs);
}

TEST_F(HeartbeatWatchTest, AChildThatSleepsForGoodIsLost) {
  StartChildThat([] { pause(); });
  while (State() != 'S') sched_yield();
  watch_.Beat(now_);
  const long after = LostAfter(60'000);
  EXPECT_GE(after, HeartbeatWatch::kSilentMs);
  EXPECT_LE(after, 2 * HeartbeatWatch::kSilentMs);
}

TEST_F(HeartbeatWatchTest, ARunningChildHasLonger) {
  StartChildThat([] {
    for (volatile bool running = true; running;) {
    }
  });
  watch_.Beat(now_);
  EXPECT_EQ(LostAfter(60'000), HeartbeatWatch::kBusySilentMs);
}

TEST_F(HeartbeatWatchTest, AChildUnderADebuggerIsNeverLost) {
  StartChildThat([] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
  });
  waitpid(child_, nullptr, 0);
  watch_.Beat(now_);
  EXPECT_EQ(LostAfter(60'000), -1);
}

TEST_F(HeartbeatWatchTest, AWatcherThatWasPausedCountsAgain) {
  StartStopped();
  watch_.Beat(now_);
  EXPECT_EQ(LostAfter(600'000, HeartbeatWatch::kWatcherPausedMs + 1), -1);
  now_ += 3'600'000;
  EXPECT_FALSE(watch_.Lost(child_, now_));
  EXPECT_EQ(LostAfter(60'000), HeartbeatWatch::kSilentMs);
}

}  // namespace
}  // namespace patchbay::workers
