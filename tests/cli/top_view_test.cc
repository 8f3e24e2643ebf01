// The screen of `top`: its order, its width and its height.
#include "runtime/cli/cluster/top_view.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kTopNow = 10'000;

protocol::JobRow StreamRow(JobId job, std::uint32_t stalled) {
  protocol::JobRow row;
  row.job = job;
  row.kind = "stream";
  row.name = StrCat("run-", job);
  row.state = protocol::JobState::kRunning;
  row.patches_made = 10;
  row.patches_total = 100;
  row.course = {574'000, stalled, "storage", "node-b", {100, 0, 0, 0, 900}};
  return row;
}

protocol::ClusterDescribed LargeCluster() {
  protocol::ClusterDescribed cluster;
  for (JobId job = 1; job <= 200; ++job)
    cluster.jobs.push_back(StreamRow(job, job == 77 ? 980 : 3));
  for (JobId job = 201; job <= 240; ++job) {
    protocol::JobRow& row = cluster.jobs.emplace_back();
    row.job = job;
    row.kind = "ingest";
    row.state = job == 240 ? protocol::JobState::kRunning : protocol::JobState::kQueued;
    if (job != 240) row.cause = "priority";
  }
  for (int i = 0; i < 30; ++i) {
    protocol::NodeRow& node = cluster.nodes.emplace_back();
    node.node = StrCat("node-", i);
    node.state = i == 17 ? "suspect" : "up";
  }
  cluster.workers.push_back({"node-3", 0, 100, "busy", 1});
  cluster.failures.push_back(
      {7, kTopNow - 60, "task 3 failed", {13, "read chunk", {}, "it is damaged"}});
  cluster.state_free_bytes = 3ull << 30;
  return cluster;
}

std::size_t LineWith(const std::vector<std::string>& lines, const std::string& text) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
  return static_cast<std::size_t>(found - lines.begin());
}

TEST(Top, ShowsTheStalledStreamFirstWithItsStageAndNode) {
  const auto lines = TopLines(LargeCluster(), {80, 24}, kTopNow);
  ASSERT_LE(lines.size(), 24u);
  EXPECT_EQ(lines[0], "nodes 29/30 up   workers 1/1 busy   journal's disk 3.0 GiB free");
  EXPECT_EQ(lines[1],
            "streams 200, 1 stalled   jobs 1 running, 39 waiting, 0 failed in the last hour");
  const std::size_t heading = LineWith(lines, "patches/s");
  ASSERT_LT(heading + 1, lines.size());
  const std::string& first = lines[heading + 1];
  EXPECT_NE(first.find("    77        574     98 %    10 %  storage on node-b"), std::string::npos)
      << first;
  EXPECT_LT(LineWith(lines, "node-17"), lines.size()) << "the node that is not up";
  EXPECT_LT(LineWith(lines, "1:00 ago, job 7: task 3 failed: read chunk: it is damaged"),
            lines.size());
  EXPECT_LT(LineWith(lines, "240  ingest  running"), LineWith(lines, "priority"));
}

TEST(Top, FitsEveryScreenAndIsWholeWithoutOne) {
  for (const ScreenSize size : {ScreenSize{80, 24}, {40, 10}, {200, 60}, {80, 3}, {1, 1}}) {
    const auto lines = TopLines(LargeCluster(), size, kTopNow);
    EXPECT_LE(lines.size(), size.rows);
    for (const std::string& line : lines) EXPECT_LE(line.size(), size.columns) << line;
  }
  const auto whole = TopLines(LargeCluster(), {1000, 0}, kTopNow);
  EXPECT_GT(whole.size(), 270u);
  EXPECT_EQ(LineWith(whole, " more"), whole.size());
}

TEST(Top, SaysWhyAStreamIsStill) {
  protocol::ClusterDescribed cluster;
  cluster.jobs = {StreamRow(1, 0), StreamRow(2, 0), StreamRow(3, 0)};
  cluster.jobs[0].on_hold = true;
  cluster.jobs[1].unattended_ms = 5;
  cluster.jobs[2].cause = "no_node";
  const auto lines = TopLines(cluster, {80, 0}, kTopNow);
  EXPECT_LT(LineWith(lines, "held"), lines.size());
  EXPECT_LT(LineWith(lines, "no trainer"), lines.size());
  EXPECT_LT(LineWith(lines, "waits: no_node"), lines.size());
}

}  // namespace
}  // namespace patchbay::cli
