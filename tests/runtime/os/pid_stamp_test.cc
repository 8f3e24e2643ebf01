// A process whose end can be proven.
#include "runtime/os/pid_stamp.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/format/json/described.h"

namespace patchbay {
namespace {

TEST(PidStamp, OneThatLivesHasNotEnded) {
  const auto stamp = ThisPid();
  ASSERT_TRUE(stamp.ok()) << stamp.status();
  EXPECT_EQ(stamp->pid, getpid());
  EXPECT_FALSE(HasEnded(*stamp));
  EXPECT_FALSE(HasEnded(*FromJson<PidStamp>(JsonOf(*stamp), "process")));
}

TEST(PidStamp, OneThatWasKilledHasEndedAlsoBeforeItsParentLooked) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto stamp = ThisPid();
    const std::uint64_t started = stamp.ok() ? stamp->started : 0;
    _exit(write(ends[1], &started, sizeof(started)) == sizeof(started) ? 0 : 1);
  }
  PidStamp stamp = *ThisPid();
  stamp.pid = child;
  ASSERT_EQ(read(ends[0], &stamp.started, sizeof(stamp.started)),
            static_cast<ssize_t>(sizeof(stamp.started)));
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(HasEnded(stamp));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(HasEnded(stamp));
  close(ends[0]);
  close(ends[1]);
}

TEST(PidStamp, AnotherProcessWithItsNumberIsNotIt) {
  PidStamp stamp = *ThisPid();
  ++stamp.started;
  EXPECT_TRUE(HasEnded(stamp));
}

TEST(PidStamp, NothingIsKnownOfAnotherMachine) {
  PidStamp stamp = *ThisPid();
  ++stamp.started;
  stamp.host += "1";
  EXPECT_FALSE(HasEnded(stamp));
}

TEST(PidStamp, RefusesWhatIsNotOne) {
  const Json good = JsonOf(*ThisPid());
  for (const auto& [key, value] :
       {std::pair("pid", Json(0)), std::pair("pid", Json(-1)), std::pair("pid", Json(1LL << 40)),
        std::pair("started", Json("x")), std::pair("host", Json(1))}) {
    Json bad = good;
    bad[key] = value;
    EXPECT_FALSE(FromJson<PidStamp>(bad, "process").ok()) << bad;
  }
  EXPECT_FALSE(FromJson<PidStamp>(Json(), "process").ok());
}

}  // namespace
}  // namespace patchbay
