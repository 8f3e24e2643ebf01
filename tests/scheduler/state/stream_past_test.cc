// The course of a stream: rates, stalls, and the node and stage that are slowest.
#include "scheduler/state/stream_past.h"

#include <gtest/gtest.h>

namespace patchbay::scheduler {
namespace {

using Hour = std::vector<std::uint32_t>;

TEST(StreamPast, KnowsNothingBeforeItsSecondLook) {
  StreamPast past;
  EXPECT_EQ(past.Course(1'000, 0, 0), protocol::StreamCourse());
  past.Look(1'000, 500, 20);
  EXPECT_EQ(past.Course(1'000, 500, 20), protocol::StreamCourse());
}

TEST(StreamPast, CountsFromItsFirstLook) {
  StreamPast past;
  past.Look(1'000, 500, 20);  // a stream that was resumed after 500 patches
  const protocol::StreamCourse course = past.Course(3'000, 700, 520);
  EXPECT_EQ(course.patches_per_ks, 100'000u);
  EXPECT_EQ(course.stalled, 250u);
  EXPECT_EQ(course.stage, "");
  EXPECT_EQ(course.hour, (Hour{0, 0, 0, 0, 750})) << "nothing was made, so no stage is to blame";
}

TEST(StreamPast, NamesTheSlowestStageAndTheNodeWhereAPatchTakesLongest) {
  StreamPast past;
  past.Look(0, 0, 0);
  past.AddShard("fast", {100, 900, 200, 0}, 10);
  past.AddShard("fast", {100, 900, 200, 0}, 10);
  past.AddShard("slow", {4'000, 300, 100, 0}, 5);
  const protocol::StreamCourse course = past.Course(10'000, 25, 5'000);
  EXPECT_EQ(course.stage, "storage");
  EXPECT_EQ(course.node, "slow");
  // 4200, 2100 and 500 of 6800 us, of a wait that was half of the time.
  EXPECT_EQ(course.hour, (Hour{309, 154, 37, 0, 500}));
}

TEST(StreamPast, ForgetsNodesAfterTwoSamplesAndTheRestAfterAnHour) {
  StreamPast past;
  past.Look(0, 0, 0);
  past.AddShard("gone", {500, 0, 0, 0}, 1);
  TimeMs now = 0;
  for (int i = 0; i < 2; ++i) past.Look(now += StreamPast::kSampleMs, 0, 0);
  past.AddShard("here", {0, 1, 0, 0}, 1);
  EXPECT_EQ(past.Course(now + 1, 0, 0).stage, "decode");
  EXPECT_EQ(past.Course(now + 1, 0, 0).node, "here");
  // It stalls for the first hour, and not in the second.
  const auto look_for_an_hour = [&](TimeMs stalled_each) {
    static TimeMs stalled = 0;
    for (const TimeMs end = now + StreamPast::kPastMs; now < end;) {
      stalled += stalled_each;
      past.Look(now += StreamPast::kSampleMs, 0, stalled);
    }
    return past.Course(now, 0, stalled);
  };
  EXPECT_LT(look_for_an_hour(StreamPast::kSampleMs).hour.back(), 10u);
  EXPECT_EQ(look_for_an_hour(0).hour.back(), 1'000u);
}

}  // namespace
}  // namespace patchbay::scheduler
