// The figures of a core, and the text that Prometheus reads.
#include "scheduler/metrics/exposition.h"

#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

constexpr char kPrefix[] = "patchbay_scheduler_";

/// Values by series, without the prefix: "job_tasks{job=\"1\",state=\"done\"}". Lines that are
/// neither a series nor HELP and TYPE of one fail the test.
std::map<std::string, double> SeriesIn(const std::string& page) {
  std::map<std::string, double> series;
  std::set<std::string> typed;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      typed.insert(line.substr(7, line.rfind(' ') - 7));
      continue;
    }
    const auto space = line.rfind(' ');
    EXPECT_TRUE(line.starts_with(kPrefix) && space != std::string::npos) << line;
    const std::string name = line.substr(0, line.find_first_of("{ "));
    const bool typed_whole = name.find("_turn_seconds_") != std::string::npos ||
                             name.find("_reclaim_seconds_") != std::string::npos;
    EXPECT_TRUE(typed_whole || typed.contains(name)) << line;
    const std::string key = line.substr(sizeof(kPrefix) - 1, space - sizeof(kPrefix) + 1);
    EXPECT_TRUE(series.emplace(key, std::stod(line.substr(space + 1))).second) << line;
  }
  return series;
}

std::map<std::string, double> SeriesOf(Core& core) {
  Sample sample;
  sample.cluster = core.Measure();
  return SeriesIn(Render(sample));
}

using Metrics = Streaming;

TEST_F(Metrics, OfAStreamSayPatchesSlotsAndStalls) {
  Attach(5, 2);
  rig.Pass(1'000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  auto series = SeriesOf(rig.core());
  EXPECT_EQ(series.at("streams"), 1);
  EXPECT_EQ(series.at(R"(stream_trainers{job="1"})"), 1);
  EXPECT_EQ(series.at(R"(stream_slots{job="1",state="filling"})"), 2);
  EXPECT_EQ(series.at(R"(stream_slots{job="1",state="full"})"), 0);
  EXPECT_GT(series.at(R"(stream_stalled_seconds_total{job="1"})"), 0.5);
  EXPECT_EQ(series.at(R"(stream_patches_total{job="1"})"), 0);
  EXPECT_EQ(series.at(R"(job_held_cores{job="1"})"), 1);
  EXPECT_EQ(series.count(R"(job_progress_ratio{job="1"})"), 0u);
  EXPECT_EQ(series.at(R"(node_busy_workers{node="node"})"), 1);
  EXPECT_EQ(series.at(R"(jobs{state="running"})"), 1);
  EXPECT_GE(series.at("leases_granted_total"), 2) << "the plan's and a shard's";

  rig.Exited(0, 100);
  EXPECT_EQ(SeriesOf(rig.core()).at("shard_fences_total"), series.at("leases"));
}

TEST_F(Metrics, OfAStreamCountItsPatches) {
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 1);
  for (const protocol::ShardLease& lease : rig.Shards()) {
    Return(lease);
    Count(lease);
  }
  EXPECT_GE(SeriesOf(rig.core()).at(R"(stream_patches_total{job="1"})"), 4);
  EXPECT_GE(SeriesOf(rig.core()).at("shards_counted_total"), 1);
}

TEST_F(Metrics, OfAStreamSayStagesPathsAndWaits) {
  Attach(5, 1);
  const protocol::ShardLease lease = rig.Shards().at(0);
  protocol::ShardsReturned returned;
  returned.items.push_back({lease.lease, job, lease.shard, {}, {1'000, 0, 7, 100}, {1, 2, 3, 4}});
  rig.Tell(CoreRig::kWorker0, returned);
  Count(lease);
  rig.Tell(CoreRig::kTrainer0, protocol::Heartbeat{1, 2'000, 5'000, 77}, 0);
  auto series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(stream_stage_seconds_total{job="1",stage="storage"})"), 1e-6);
  EXPECT_EQ(series.at(R"(stream_stage_seconds_total{job="1",stage="transfer"})"), 4e-6);
  EXPECT_EQ(series.at(R"(stream_wait_p50_seconds{job="1"})"), 2e-3);
  EXPECT_EQ(series.at(R"(stream_wait_p99_seconds{job="1"})"), 5e-3);
  EXPECT_EQ(series.at(R"(stream_memory_bytes{job="1"})"), 77);
  EXPECT_EQ(series.at(R"(path_bytes_total{path="mapped"})"), 100);
  EXPECT_EQ(series.at(R"(path_bytes_total{path="tls"})"), 0);
}

TEST(MetricsOfTeams, SayCoresAndWhyJobsWait) {
  CoreRig rig;
  rig.Submit("a");
  rig.AddAgent();
  rig.AddWorker();
  rig.Submit("b");
  rig.Submit("c");
  auto series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(team_cores{team="default",state="held"})"), 1);
  EXPECT_GE(series.at(R"(team_cores{team="default",state="wanted"})"), 1);
  double waiting = 0;
  for (const auto& [name, jobs] : series) {
    if (name.starts_with("team_jobs_waiting{team=\"default\",cause=\"")) waiting += jobs;
  }
  EXPECT_GE(waiting, 1);
}

/// The owner has one of two guaranteed cores while a task of others runs on for 2 s.
TEST(MetricsOfTeams, SayLentCoresAndHowLongTheirOwnerWaited) {
  CoreRig rig;
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.cpu_millis = 2'000;
  policy.teams["rad"];
  policy.reclaim_after_ms = 2'000;
  rig.Tell(CoreRig::kOps, protocol::ApplyTeams{DumpJson(JsonOf(policy)), "", ""});
  rig.Join(60, Role::kSubmitter, "ann", "path");
  rig.Join(61, Role::kSubmitter, "bob", "rad");
  rig.AddAgent(2);
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1};
  for (std::uint32_t i = 0; i < 2; ++i) rig.AddWorker(i);
  rig.Pass(200, alive);  // a tick sees the cores that are up
  for (const char* key : {"c", "d"}) rig.Submit(key, "noop", 0, 61);
  auto series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(team_cores{team="path",state="guaranteed"})"), 2);
  EXPECT_EQ(series.at(R"(team_cores{team="path",state="lent"})"), 2) << "it has no job at all";
  EXPECT_EQ(series.at(R"(team_cores{team="path",state="held"})"), 0);
  EXPECT_EQ(series.at(R"(team_cores{team="rad",state="borrowed"})"), 2);
  EXPECT_EQ(series.at(R"(team_cores{team="rad",state="lent"})"), 0);
  EXPECT_EQ(series.at("reclaim_seconds_count"), 0);
  for (const char* key : {"a", "b"}) rig.Submit(key, "noop", 0, 60);
  rig.Pass(2'500, alive);
  series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(team_reclaims_total{team="path"})"), 2);
  EXPECT_EQ(series.at(R"(team_reclaims_total{team="rad"})"), 0);
  EXPECT_EQ(series.at(R"(team_cores{team="path",state="lent"})"), 0);
  EXPECT_EQ(series.at(R"(team_cores{team="rad",state="borrowed"})"), 0);
  EXPECT_EQ(series.at("tasks_returned_total"), 2);
  EXPECT_EQ(series.at("reclaim_seconds_count"), 2);
  EXPECT_EQ(series.at(R"(reclaim_seconds_bucket{le="1"})"), 0);
  EXPECT_EQ(series.at(R"(reclaim_seconds_bucket{le="5"})"), 2);
  EXPECT_NEAR(series.at("reclaim_seconds_sum"), 2 * 2.0, 0.5);
}

TEST(MetricsOfAJob, SayItsTasksTriesAndCost) {
  CoreRig rig;
  rig.AddAgent();
  rig.AddWorker();
  const JobId job = rig.Submit("key");
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {Spec("a", 1), Spec("b", 2)});
  const protocol::TaskLease first = rig.Granted().at(0);
  rig.Pass(1'000, {CoreRig::kAgent, CoreRig::kWorker0});
  protocol::TasksFinished finished;
  finished.items.push_back({first.lease, first.task, {}, "", {}, 0, 0});
  finished.items.back().cost = {.cpu_us = 1'000, .bytes_read = 7};
  rig.Tell(CoreRig::kWorker0, finished);
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, Failure(absl::StatusCode::kUnavailable));
  auto series = SeriesOf(rig.core());
  const std::string label = StrCat("{job=\"", job, "\"");
  EXPECT_EQ(series.at(StrCat("job_tasks", label, ",state=\"done\"}")), 2);
  EXPECT_EQ(series.at(StrCat("job_tasks", label, ",state=\"waiting\"}")), 1);
  EXPECT_EQ(series.at("task_retries_total"), 1);
  EXPECT_EQ(series.at("slides_total{outcome=\"done\"}"), 1);
  EXPECT_EQ(series.at("slides_total{outcome=\"failed\"}"), 0);
  rig.Submit("other");
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {Spec("c", 1)});
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, Failure(absl::StatusCode::kDataLoss));
  EXPECT_EQ(SeriesOf(rig.core()).at("slides_total{outcome=\"failed\"}"), 1);
  EXPECT_EQ(series.at("tasks_committed_total"), 2);
  EXPECT_DOUBLE_EQ(series.at("cpu_seconds_total{outcome=\"counted\"}"), 1e-3);
  EXPECT_EQ(series.at("read_bytes_total{outcome=\"counted\"}"), 7);
  EXPECT_EQ(series.at("read_bytes_total{outcome=\"wasted\"}"), 0);
}

TEST(MetricsOfNodes, SayThatOneIsSilentAndThatAnotherIsAwaited) {
  CoreRig rig;
  rig.AddAgent();
  rig.AddWorker();
  EXPECT_EQ(SeriesOf(rig.core()).at(R"(node_up{node="node"})"), 1);
  rig.Tell(CoreRig::kAgent, protocol::Heartbeat{.memory_bytes = 99}, 0);
  EXPECT_EQ(SeriesOf(rig.core()).at(R"(node_memory_bytes{node="node"})"), 99);
  rig.Pass(4'000, {});
  auto series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(node_up{node="node"})"), 0);
  EXPECT_EQ(series.at(R"(nodes{state="suspect"})"), 1);
  rig.Restart();
  series = SeriesOf(rig.core());
  EXPECT_EQ(series.at(R"(nodes{state="away"})"), 1);
  EXPECT_EQ(series.at(R"(node_up{node="node"})"), 0);
}

TEST(MetricsOfALargeCluster, FoldJobsAndStayBelowTheLimit) {
  Sample sample;
  for (JobId job = 1; job <= kMaxOpenJobs; ++job) {
    const std::uint32_t held = job == 5 ? 1'000 : 0;
    sample.cluster.open_jobs.push_back({job, 1, 0, 0, 2, 1, 4, held, 1'000});
  }
  for (int i = 0; i < 150; ++i) {
    TeamMeasures& team = sample.cluster.teams[StrCat("t", 1000 + i)];
    team.held_cpu_millis = 1'000;
    team.lending = {2'000, 1'000, 500, 3};
    for (const std::string_view cause :
         {"held", "share", "priority", "memory", "gpus", "no_node", "drained", "suspect"}) {
      team.waiting[cause] = 1;
    }
  }
  for (JobId job = 1; job <= kMaxStreams; ++job) {
    sample.cluster.streams.push_back({.job = job, .patches_made = 2, .wait_p99_us = 1'000 * job});
  }
  for (std::size_t i = 0; i < kMaxNodes + 100; ++i) {
    sample.cluster.nodes.push_back({StrCat("n", i), "up", 16, 16, 1});
  }
  auto series = SeriesIn(Render(sample));
  EXPECT_LE(series.size(), kMostSeries);
  EXPECT_GT(series.size(), kMostSeries / 2) << "the test is at the bounds";
  EXPECT_EQ(series.at(R"(team_cores{team="other",state="held"})"), 150.0 - kMostTeams);
  EXPECT_EQ(series.at(R"(team_jobs_waiting{team="other",cause="share"})"), 150.0 - kMostTeams);
  EXPECT_EQ(series.at(R"(team_cores{team="other",state="guaranteed"})"), 2 * (150.0 - kMostTeams));
  EXPECT_EQ(series.at(R"(team_cores{team="other",state="lent"})"), 150.0 - kMostTeams);
  EXPECT_EQ(series.at(R"(team_cores{team="other",state="borrowed"})"), 0.5 * (150.0 - kMostTeams));
  EXPECT_EQ(series.at(R"(team_reclaims_total{team="other"})"), 3 * (150.0 - kMostTeams));
  EXPECT_EQ(series.at(R"(stream_patches_total{job="256"})"), 2);
  EXPECT_EQ(series.count(R"(stream_patches_total{job="257"})"), 0u);
  EXPECT_EQ(series.at(R"(stream_patches_total{job="other"})"), 2.0 * (kMaxStreams - kMostStreams));
  EXPECT_EQ(series.at(R"(stream_wait_p99_seconds{job="other"})"), 1e-3 * kMaxStreams);
  EXPECT_EQ(series.at("jobs_folded"), kMaxOpenJobs - kMostJobs);
  EXPECT_EQ(series.at(R"(job_tasks{job="other",state="waiting"})"),
            2.0 * static_cast<double>(kMaxOpenJobs - kMostJobs));
  EXPECT_EQ(series.at(R"(job_progress_ratio{job="other"})"), 0.25);
  EXPECT_EQ(series.at(R"(job_held_cores{job="5"})"), 1) << "it works, though it is old";
  EXPECT_EQ(series.count(R"(job_held_cores{job="6"})"), 0u);
  EXPECT_EQ(series.count(StrCat("job_held_cores{job=\"", kMaxOpenJobs, "\"}")), 1u);
}

TEST(MetricsOfTurns, AreCountedBySize) {
  Sample sample;
  sample.turns.Add(50'000);
  sample.turns.Add(2'000'000);
  sample.turns.Add(5'000'000'000);
  auto series = SeriesIn(Render(sample));
  EXPECT_EQ(series.at(R"(turn_seconds_bucket{le="0.0001"})"), 1);
  EXPECT_EQ(series.at(R"(turn_seconds_bucket{le="0.005"})"), 2);
  EXPECT_EQ(series.at(R"(turn_seconds_bucket{le="+Inf"})"), 3);
  EXPECT_EQ(series.at("turn_seconds_count"), 3);
  EXPECT_NEAR(series.at("turn_seconds_sum"), 5.00205, 1e-9);
}

}  // namespace
}  // namespace patchbay::scheduler
