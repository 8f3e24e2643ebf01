// The rate, the time left and the share that a running job is shown with.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/progress_lines.h"

namespace patchbay::cli {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

protocol::JobRow Row(std::uint64_t done, std::uint64_t total, std::uint64_t bytes) {
  protocol::JobRow row;
  row.kind = "ingest";
  row.state = protocol::JobState::kRunning;
  row.weight_done = done;
  row.weight_total = total;
  row.progress_bytes = bytes;
  return row;
}

/// A slide is listed and opened, then one of ten equal tasks ends every two seconds.
protocol::JobRow RowAt(double s) {
  if (s < 0.5) return Row(0, 1, 0);
  if (s < 1) return Row(1, 3, 0);
  const auto ended = static_cast<std::uint64_t>(std::min((s - 1) / 2, 10.0));
  return Row(2 + ended * 1000, 3 + 10'000, ended * 20 * kMega);
}

TEST(JobPaceMeter, TimeLeftNeverRisesAndTheRateStandsWhileTasksEndEvenly) {
  JobPaceMeter meter;
  double left_before = 1e9;
  for (int step = 0; step <= 200; ++step) {
    const double s = 0.1 * step;
    const JobPace pace = meter.Look(RowAt(s), s);
    if (s < 3) continue;  // until the first task ends
    EXPECT_NEAR(pace.bytes_per_s, 10e6, 1e6) << s;
    EXPECT_GE(pace.seconds_left, 0) << s;
    EXPECT_LE(pace.seconds_left, left_before + 0.15) << s;
    EXPECT_NEAR(pace.seconds_left, 21 - s, 1) << s;
    left_before = pace.seconds_left;
  }
}

TEST(JobPaceMeter, AStandstillCountsAgainstTheRate) {
  JobPaceMeter meter;
  for (int step = 0; step <= 100; ++step) meter.Look(RowAt(0.1 * step), 0.1 * step);
  const JobPace before = meter.Look(RowAt(10), 10.1);
  const JobPace after = meter.Look(RowAt(10), 60);
  EXPECT_LT(after.bytes_per_s, before.bytes_per_s / 4);
  EXPECT_GT(after.seconds_left, 2 * before.seconds_left);
}

TEST(JobPaceMeter, OfALongRunWhatIsRecentCounts) {
  JobPaceMeter meter;
  JobPace pace;
  for (std::uint64_t s = 0; s <= 2000; ++s) {
    const std::uint64_t fast = std::min<std::uint64_t>(s, 1000), slow = (s - fast) / 10;
    pace = meter.Look(Row(fast + slow, 2000, (fast + slow) * kMega), static_cast<double>(s));
  }
  EXPECT_NEAR(pace.bytes_per_s, 0.1e6, 0.02e6);
  EXPECT_NEAR(pace.seconds_left, 9000, 500);
}

TEST(ShownShare, IsNoneBeforeTheWorkIsKnownAndNeverFalls) {
  ShownShare share;
  EXPECT_EQ(share.Look(Row(0, 1, 0)), 0);
  EXPECT_EQ(share.Look(Row(1, 3, 0)), 0) << "the list of slides is no part of the work";
  EXPECT_EQ(share.Look(Row(1, 3, 0)), 0);
  EXPECT_EQ(share.Look(Row(2, 1003, 0)), 0);
  EXPECT_NEAR(share.Look(Row(502, 1003, 5)), 0.5, 0.01);
  EXPECT_NEAR(share.Look(Row(503, 9003, 5)), 0.5, 0.01) << "another slide was opened";
}

TEST(ShownShare, IsBelowAllUntilTheJobIsDone) {
  ShownShare share;
  EXPECT_LT(share.Look(Row(1'000'000, 1'000'001, 5)), 1);
  protocol::JobRow row = Row(1'000'001, 1'000'001, 5);
  EXPECT_LT(share.Look(row), 1);
  EXPECT_EQ(ProgressText(row, share.Look(row), "slides 1/1", {}),
            "ingest 99 %  slides 1/1  5 B of pixels");
  row.state = protocol::JobState::kDone;
  EXPECT_EQ(share.Look(row), 1);
  EXPECT_EQ(ProgressText(row, 1, "slides 1/1", {}), "ingest 100 %  slides 1/1  5 B of pixels");
}

TEST(ProgressText, NamesSlidesBytesRateAndTimeLeftInThatOrder) {
  protocol::JobRow row = Row(42, 100, std::uint64_t{1023} << 30);
  row.tasks_failed = 100;
  const std::string text = ProgressText(row, 0.42, "slides 1234/5678", {1200e6, 36'000});
  EXPECT_EQ(text,
            "ingest 42 %  slides 1234/5678  failed tasks 100  1023.0 GiB of pixels  1200 MB/s  "
            "10:00:00 left");
  const std::string usual =
      ProgressText(Row(42, 100, std::uint64_t{3} << 30), 0.42, "slides 5/12", {120e6, 200});
  EXPECT_EQ(usual, "ingest 42 %  slides 5/12  3.0 GiB of pixels  120 MB/s  3:20 left");
  EXPECT_EQ(FirstColumns(usual, 39), "ingest 42 %  slides 5/12  3.0 GiB of pi");
}

TEST(ProgressLines, ALogGetsALineForEachTenthAndNoLongSilence) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  ProgressLines lines(false, 30 * kSecond);
  std::vector<std::int64_t> shown;
  for (std::int64_t s = 0; s <= 100; ++s) {  // a tenth every 1000 s
    if (lines.Due(static_cast<double>(s) / 10'000, s * kSecond)) shown.push_back(s);
  }
  EXPECT_EQ(shown, (std::vector<std::int64_t>{0, 30, 60, 90}));
  EXPECT_TRUE(lines.Due(0.1, 101 * kSecond));
  EXPECT_FALSE(lines.Due(0.11, 102 * kSecond));
}

TEST(ProgressLines, ATerminalIsRedrawnFiveTimesASecond) {
  ProgressLines lines(true, 30'000'000'000);
  EXPECT_TRUE(lines.Due(0, 0));
  EXPECT_FALSE(lines.Due(0.5, kRedrawEveryNs - 1));
  EXPECT_TRUE(lines.Due(0.5, kRedrawEveryNs));
}

}  // namespace
}  // namespace patchbay::cli
