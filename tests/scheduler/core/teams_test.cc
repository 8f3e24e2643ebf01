// Teams: policies that are applied, kept and refused, and who is served by them.
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

constexpr PeerId kEve = 73;

class Teams : public testing::Test {
 protected:
  Teams() {
    policy.teams["path"];
    policy.teams["rad"];
    JoinUsers();
  }
  void JoinUsers() {
    rig.Join(kAnn, Role::kSubmitter, "ann", "path");
    rig.Join(kBob, Role::kSubmitter, "bob", "rad");
    rig.Join(kEve, Role::kSubmitter, "eve");
  }
  /// The reason for a refusal; empty when the policy holds.
  std::string Apply(const std::string& move_to = "") {
    return ApplyText(DumpJson(JsonOf(policy)), move_to);
  }
  std::string ApplyText(const std::string& text, const std::string& move_to = "") {
    rig.Tell(CoreRig::kOps, protocol::ApplyTeams{text, "the file", move_to});
    if (rig.Find<protocol::TeamsApplied>() != nullptr) return "";
    return Refused();
  }
  std::string Refused() {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "" : StrCat(failed->outcome.doing, ": ", failed->outcome.cause);
  }
  protocol::TeamsDescribed Describe(PeerId peer = CoreRig::kOps) {
    rig.Tell(peer, protocol::DescribeTeams{});
    return *rig.Find<protocol::TeamsDescribed>();
  }
  protocol::TeamRow RowOf(const std::string& team, const std::string& user = "") {
    for (const protocol::TeamRow& row : Describe().rows) {
      if (row.team == team && row.user == user) return row;
    }
    return {};
  }
  void FinishFor(const protocol::TaskLease& lease, std::int64_t cpu_us) {
    protocol::TasksFinished finished;
    finished.items.push_back({lease.lease, lease.task, {}, "", {}, 0, 0, {cpu_us, 0, 0, 0}});
    rig.Tell(CoreRig::kWorker0, finished);
  }
  model::TeamPolicy policy;
  CoreRig rig;
};

TEST_F(Teams, APolicyIsKeptOverARestartAndShownWithItsSource) {
  policy.teams["path"].weight_millis = 2'500;
  policy.teams["path"].most.cpu_millis = 7'000;
  ASSERT_EQ(Apply(), "");
  rig.Restart();
  ASSERT_TRUE(rig.replayed().ok());
  const protocol::TeamsDescribed shown = Describe();
  EXPECT_EQ(shown.source, "the file");
  EXPECT_EQ(shown.digest, Sha256Of("the file"));
  EXPECT_EQ(shown.applied_by, "ops");
  EXPECT_NE(shown.applied_at, 0);
  EXPECT_EQ(RowOf("path").weight_millis, 2'500u);
  EXPECT_EQ(RowOf("path").most_cpu_millis, 7'000u);
}

TEST_F(Teams, ARefusedPolicyLeavesTheOneThatHolds) {
  policy.teams["path"].weight_millis = 2'500;
  ASSERT_EQ(Apply(), "");
  EXPECT_NE(ApplyText("{").find("apply teams"), std::string::npos);
  EXPECT_NE(ApplyText(R"({"default": {}, "half_live_s": 60})").find("half_live_s"),
            std::string::npos);
  EXPECT_NE(ApplyText(std::string((1u << 20) + 1, ' ')).find("larger"), std::string::npos);
  policy.teams["path"].guaranteed.cpu_millis = 2'000;
  policy.teams["path"].most.cpu_millis = 1'000;
  EXPECT_NE(Apply().find("team path: most.cores is below guaranteed.cores"), std::string::npos);
  EXPECT_EQ(RowOf("path").weight_millis, 2'500u);
}

TEST_F(Teams, ATeamWithOpenJobsIsRemovedOnlyWithATeamThatGetsThem) {
  ASSERT_EQ(Apply(), "");
  const JobId job = rig.Submit("key", "noop", 0, kAnn);
  EXPECT_EQ(rig.Row(job).team, "path");
  policy.teams.erase("path");
  EXPECT_NE(Apply().find(StrCat("team path is gone, and has open jobs: ", job)), std::string::npos);
  EXPECT_NE(Apply("none").find("no such team"), std::string::npos);
  EXPECT_EQ(rig.Row(job).team, "path");
  EXPECT_EQ(Apply("rad"), "");
  EXPECT_EQ(rig.Row(job).team, "rad");
  EXPECT_EQ(RowOf("rad", "ann").jobs_open, 1u);
  rig.Restart();
  EXPECT_EQ(rig.Row(job).team, "rad");
}

TEST_F(Teams, AJobThatMayNeverRunIsRefusedAtSubmission) {
  ASSERT_EQ(Apply(), "");
  EXPECT_NE(rig.Submit("one", "noop", 0, kEve), 0u) << "of the default team";
  policy.others.reset();
  policy.teams.erase("rad");
  policy.teams["path"].most.cpu_millis = 0;
  ASSERT_EQ(Apply("path"), "");
  EXPECT_EQ(rig.Submit("two", "noop", 0, kEve), 0u);
  EXPECT_NE(Refused().find("no such team"), std::string::npos);
  EXPECT_EQ(rig.Submit("three", "noop", 0, kBob), 0u);
  EXPECT_NE(Refused().find("team rad"), std::string::npos);
  EXPECT_EQ(rig.Submit("four", "noop", 0, kAnn), 0u);
  EXPECT_NE(Refused().find("0 cores"), std::string::npos);
}

TEST_F(Teams, AJobIsRetriedOnlyWhileItsTeamMayHaveOneMore) {
  policy.teams["path"].most.jobs = 1;
  ASSERT_EQ(Apply(), "");
  const JobId first = rig.Submit("one", "noop", 0, kAnn);
  rig.Tell(kAnn, protocol::CancelJob{first});
  const JobId second = rig.Submit("two", "noop", 0, kAnn);
  rig.Tell(kAnn, protocol::RetryJob{first});
  EXPECT_NE(Refused().find("retry job: 1: team path: it has 1 open jobs"), std::string::npos)
      << Refused();
  rig.Tell(kAnn, protocol::CancelJob{second});
  rig.Tell(kAnn, protocol::RetryJob{first});
  EXPECT_NE(rig.Find<protocol::JobRetried>(), nullptr);
}

TEST_F(Teams, JobsAndStreamsBeyondTheMostAreRefusedUntilOthersEnd) {
  policy.teams["path"].most.jobs = 2;
  policy.teams["path"].most.streams = 1;
  ASSERT_EQ(Apply(), "");
  const JobId first = rig.Submit("one", "stream", 0, kAnn);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(rig.Submit("two", "stream", 0, kAnn), 0u);
  EXPECT_NE(Refused().find("with at most 1 ranks"), std::string::npos);
  EXPECT_NE(rig.Submit("three", "noop", 0, kAnn), 0u);
  EXPECT_EQ(rig.Submit("four", "noop", 0, kAnn), 0u);
  EXPECT_NE(Refused().find("2 open jobs"), std::string::npos);
  EXPECT_NE(rig.Submit("one", "noop", 0, kBob), 0u);
  rig.Tell(kAnn, protocol::CancelJob{first});
  EXPECT_NE(rig.Submit("five", "stream", 0, kAnn), 0u);
}

TEST_F(Teams, AMemberSeesItsTeamByUserAndNoOther) {
  ASSERT_EQ(Apply(), "");
  rig.Submit("one", "noop", 0, kAnn);
  rig.Submit("one", "noop", 0, kBob);
  const protocol::TeamsDescribed shown = Describe(kAnn);
  EXPECT_EQ(shown.source, "");
  ASSERT_EQ(shown.rows.size(), 2u);
  EXPECT_EQ(shown.rows[0].team, "path");
  EXPECT_EQ(shown.rows[1].user, "ann");
  rig.Tell(kAnn, protocol::ApplyTeams{"{}", "", ""});
  EXPECT_NE(Refused(), "") << "for operators";
}

TEST_F(Teams, UsersTakeTurnsHoweverManyJobsOneHas) {
  rig.AddAgent();
  for (const char* key : {"a", "b", "c", "d"}) rig.Submit(key, "noop", 0, kAnn);
  const JobId late = rig.Submit("late", "noop", 0, kBob);
  rig.AddWorker();
  const auto first = rig.Granted();
  ASSERT_EQ(first.size(), 1u) << "an op that was never measured";
  rig.Finish(CoreRig::kWorker0, first[0]);
  std::set<JobId> second;
  for (const protocol::TaskLease& lease : rig.Granted()) second.insert(lease.task.job);
  EXPECT_EQ(second.count(late), 1u);
}

TEST_F(Teams, UseIsKeptOverARestart) {
  ASSERT_EQ(Apply(), "");
  rig.AddAgent();
  rig.AddWorker();
  rig.Submit("one", "noop", 0, kAnn);
  const protocol::TaskLease lease = rig.Granted().at(0);
  rig.Pass(3'000, {CoreRig::kAgent, CoreRig::kWorker0});
  protocol::TasksFinished finished;
  finished.items.push_back({lease.lease, lease.task, {}, "", {}, 0, 0, {2'000'000, 0, 0, 0}});
  rig.Tell(CoreRig::kWorker0, finished);
  EXPECT_EQ(RowOf("path", "ann").used_cpu_ms, 2'000u);
  rig.Restart();
  EXPECT_NEAR(static_cast<double>(RowOf("path", "ann").used_cpu_ms), 2'000, 60)
      << "hours are kept, of a half-life of 24";
  EXPECT_EQ(RowOf("rad").used_cpu_ms, 0u);
}

TEST_F(Teams, ATaskIsChargedAsItRunsAndOnceInAll) {
  ASSERT_EQ(Apply(), "");
  rig.AddAgent();
  rig.AddWorker();
  rig.Submit("long", "noop", 0, kAnn);
  const protocol::TaskLease lease = rig.Granted().at(0);
  const auto used_ms = [&] { return static_cast<double>(RowOf("path", "ann").used_cpu_ms); };
  std::uint64_t progress = 0;
  const auto renew = [&](std::int64_t cpu_us) {
    rig.Renew(CoreRig::kWorker0, lease.lease, ++progress, cpu_us);
    rig.Pass(100, {CoreRig::kAgent, CoreRig::kWorker0});
  };
  rig.Pass(2'000, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_EQ(used_ms(), 0);
  renew(1'000'000);
  EXPECT_NEAR(used_ms(), 1'000, 150);
  rig.Pass(1'900, {CoreRig::kAgent, CoreRig::kWorker0});
  renew(std::numeric_limits<std::int64_t>::max());
  EXPECT_LT(used_ms(), 20'000) << "no more than its lease had time for";
  FinishFor(lease, 3'000'000);
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_NEAR(used_ms(), 3'000, 10);
}

TEST_F(Teams, ATaskOfAFormerSchedulerIsNotChargedForItsPastAtOnce) {
  ASSERT_EQ(Apply(), "");
  rig.AddAgent();
  rig.AddWorker();
  rig.Submit("long", "noop", 0, kAnn);
  const protocol::TaskLease lease = rig.Granted().at(0);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker(0, 100, {{lease.lease, false, lease.task, 0, {}}});
  rig.Renew(CoreRig::kWorker0, lease.lease, 1, 600'000'000);
  rig.Pass(100, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_EQ(RowOf("path", "ann").used_cpu_ms, 0u);
  rig.Pass(900, {CoreRig::kAgent, CoreRig::kWorker0});
  rig.Renew(CoreRig::kWorker0, lease.lease, 2, 601'000'000);
  rig.Pass(100, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_NEAR(static_cast<double>(RowOf("path", "ann").used_cpu_ms), 1'100, 150);
}

TEST_F(Teams, AClockThatStepsAYearForgetsNoUseAndStarvesNobody) {
  constexpr std::int64_t kYear = 365 * 86'400;
  ASSERT_EQ(Apply(), "");
  rig.AddAgent();
  rig.AddWorker();
  double used_ms = 0;
  for (const std::int64_t step : {kYear, -2 * kYear, kYear}) {
    rig.StepClock(step);
    for (const PeerId user : {kAnn, kBob}) {
      rig.Submit(StrCat(user, " ", step, " ", used_ms), "noop", 0, user);
      ASSERT_EQ(rig.Granted().size(), 1u) << step;
      const protocol::TaskLease lease = rig.Granted().at(0);
      rig.Pass(3'000, {CoreRig::kAgent, CoreRig::kWorker0});
      FinishFor(lease, 2'000'000);
    }
    used_ms += 2'000;
    EXPECT_NEAR(static_cast<double>(RowOf("path", "ann").used_cpu_ms), used_ms, 10) << step;
    EXPECT_NEAR(static_cast<double>(RowOf("rad", "bob").used_cpu_ms), used_ms, 10) << step;
  }
  rig.StepClock(-kYear);
  rig.Restart();
  EXPECT_NEAR(static_cast<double>(RowOf("path", "ann").used_cpu_ms), used_ms - 2'000, 10)
      << "use of hours to come counts in full, and none is kept for two years";
}

TEST_F(Teams, ACapHoldsOverARestart) {
  policy.teams["path"].most.cpu_millis = 1'000;
  ASSERT_EQ(Apply(), "");
  rig.Restart();
  JoinUsers();
  rig.AddAgent();
  rig.AddWorker(0);
  rig.AddWorker(1);
  rig.Pass(4'000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1});
  for (const char* key : {"a", "b", "c"}) rig.Submit(key, "noop", 0, kAnn);
  EXPECT_EQ(RowOf("path").held_cpu_millis, 1'000u);
  EXPECT_EQ(RowOf("path").wanted_cpu_millis, 3'000u);
  for (const char* key : {"a", "b", "c"}) rig.Submit(key, "noop", 0, kBob);
  EXPECT_EQ(RowOf("path").held_cpu_millis, 1'000u);
  EXPECT_GE(RowOf("rad").held_cpu_millis, 1'000u) << "the other worker is free for others";
}

TEST_F(Teams, GpusGoFirstToTheTeamThatIsGuaranteedThem) {
  policy.teams["rad"].guaranteed.gpus = 1;
  policy.teams["path"].most.memory_bytes = 1 << 20;
  ASSERT_EQ(Apply(), "");
  const auto submit = [&](const std::string& key, PeerId peer) {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = "batch";
    submit.root.op = "root";
    submit.root.resources = {1000, 1, 1 << 10};
    rig.Tell(peer, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  };
  for (const char* key : {"a", "b", "c"}) submit(key, kAnn);
  const JobId bobs = submit("a", kBob);
  rig.AddAgent(1, 1, 1);
  rig.Pass(200, {CoreRig::kAgent});  // guarantees are of what is up at the last tick
  rig.AddGpuWorker(0);
  ASSERT_FALSE(rig.Granted().empty());
  EXPECT_EQ(rig.Granted()[0].task.job, bobs);
  const protocol::TeamRow row = RowOf("rad");
  EXPECT_EQ(row.guaranteed_gpus, 1u);
  EXPECT_EQ(row.held_gpus, 1u);
  EXPECT_EQ(row.held_memory_bytes, 1u << 10);
  EXPECT_EQ(row.most_gpus, -1);
  EXPECT_EQ(RowOf("path").most_memory_bytes, 1u << 20);
}

TEST_F(Teams, ATeamWithoutGpusIsRefusedWorkThatNeedsOne) {
  policy.teams["path"].most.gpus = 0;
  ASSERT_EQ(Apply(), "");
  protocol::SubmitJob submit;
  submit.submission_key = submit.kind = "batch";
  submit.root.op = "root";
  submit.root.resources = {1000, 1, 0};
  rig.Tell(kAnn, submit);
  EXPECT_NE(Refused().find("team path: it may have 0 GPUs"), std::string::npos) << Refused();
  EXPECT_NE(rig.Submit("one", "noop", 0, kAnn), 0u);
  EXPECT_EQ(RowOf("path").most_gpus, 0);
}

}  // namespace
}  // namespace patchbay::scheduler
