#include "runtime/client/scheduler_away.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace patchbay::client {
namespace {

const Status kWhy = absl::UnavailableError("connect: tcp://10.0.0.1:7777: nothing listens there");

TEST(SchedulerAway, CountsDownEveryTenSecondsAndThenEndsTheStream) {
  SchedulerAway away("stream 12", 25'000);
  away.Lost(100'000);
  std::vector<std::string> said;
  TimeMs now = 100'000;
  StatusOr<std::string> line = std::string();
  for (; line.ok(); now += 500) {
    line = away.Look(now, kWhy);
    if (line.ok() && !line->empty()) said.push_back(*line);
  }
  const std::string why = " s (connect: tcp://10.0.0.1:7777: nothing listens there)";
  EXPECT_EQ(said,
            (std::vector<std::string>{
                "stream 12: no scheduler for 1" + why + ", the stream goes on waiting for 24 s",
                "stream 12: no scheduler for 11" + why + ", the stream goes on waiting for 14 s",
                "stream 12: no scheduler for 21" + why + ", the stream goes on waiting for 4 s"}));
  EXPECT_TRUE(absl::IsUnavailable(line.status()));
  EXPECT_EQ(MessageOf(line.status()), "stream 12: no scheduler for 25" + why);
  EXPECT_EQ(now - 500, 125'500) << "not before the grace is over";
}

TEST(SchedulerAway, AShortAbsenceIsNotSpokenOf) {
  SchedulerAway away("stream 12", 25'000);
  EXPECT_EQ(*away.Look(5'000, kWhy), "") << "it is there";
  away.Lost(5'000);
  EXPECT_EQ(*away.Look(5'999, kWhy), "");
  EXPECT_EQ(away.Back(), "");
  EXPECT_EQ(*away.Look(90'000, kWhy), "");
}

TEST(SchedulerAway, ItsReturnIsSaidOnceAndTheNextAbsenceStartsAnew) {
  SchedulerAway away("stream 12", 25'000);
  away.Lost(0);
  away.Lost(900);  // a try to connect that failed
  EXPECT_NE(*away.Look(1'000, kWhy), "");
  EXPECT_EQ(away.Back(), "stream 12: the scheduler is back");
  EXPECT_EQ(away.Back(), "");
  away.Lost(2'000);
  EXPECT_EQ(*away.Look(2'500, kWhy), "");
  const auto line = away.Look(3'000, kWhy);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_NE(line->find("no scheduler for 1 s"), std::string::npos) << *line;
  EXPECT_NE(line->find("waiting for 24 s"), std::string::npos) << *line;
}

}  // namespace
}  // namespace patchbay::client
