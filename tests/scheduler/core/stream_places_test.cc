// Streams beyond the most of their team: they wait for a place, in their order, or are refused; and
// jobs that could never run.
#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

class StreamPlaces : public testing::Test {
 protected:
  StreamPlaces() {
    policy.teams["path"].most.streams = 2;
    Begin();
    Apply();
  }
  ~StreamPlaces() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  void Begin() {
    rig.Join(kAnn, Role::kSubmitter, "ann", "path");
    rig.Join(kBob, Role::kSubmitter, "bob");
    rig.AddAgent(4);
    for (std::uint32_t i = 0; i < 4; ++i) rig.AddWorker(i, 100 * ++starts_);
  }
  void Apply() {
    rig.Tell(CoreRig::kOps, protocol::ApplyTeams{DumpJson(JsonOf(policy)), "", ""});
    ASSERT_NE(rig.Find<protocol::TeamsApplied>(), nullptr);
  }
  JobId Stream(std::uint32_t ranks = 1, bool waits = true, PeerId by = kAnn) {
    protocol::SubmitJob submit;
    submit.submission_key = StrCat("s", ++submissions_);
    submit.kind = "stream";
    submit.root.op = "stream.plan";
    submit.world_size = ranks;
    submit.waits = waits;
    rig.Tell(by, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  Outcome Refused() {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? Outcome{} : failed->outcome;
  }
  void Cancel(JobId job) { rig.Tell(CoreRig::kOps, protocol::CancelJob{job}); }
  /// The job whose planning was granted by the last call; 0 for none.
  JobId Granted() {
    const auto tasks = rig.Granted();
    return tasks.empty() ? 0 : tasks.front().task.job;
  }
  std::string Cause(JobId job) { return rig.Row(job).cause; }

  model::TeamPolicy policy;
  CoreRig rig;

 private:
  int submissions_ = 0, starts_ = 0;
};

TEST_F(StreamPlaces, AreGivenInTheOrderOfSubmissionAsStreamsEnd) {
  const JobId first = Stream(), second = Stream(), third = Stream();
  EXPECT_EQ(Granted(), 0u);
  const JobId fourth = Stream();
  EXPECT_EQ(rig.Row(third).state, protocol::JobState::kQueued);
  EXPECT_EQ(Cause(third), "cap_team");
  rig.Tell(kAnn, protocol::ExplainJob{third});
  const auto* why = rig.Find<protocol::JobExplained>();
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->cause, "cap_team");
  EXPECT_EQ(why->facts.at(0).text, "team path has as many streams as it may, with at most 2 ranks");
  EXPECT_EQ(why->facts.at(1).text,
            "when one of them ends, or with more as teams.path.most.streams");
  Cancel(second);
  EXPECT_EQ(Granted(), third);
  EXPECT_EQ(Cause(fourth), "cap_team");
  Cancel(first);
  EXPECT_EQ(Granted(), fourth);
}

TEST_F(StreamPlaces, AreOfTheTeamAlone) {
  Stream(), Stream();
  const JobId bobs = Stream(1, true, kBob);
  EXPECT_EQ(Granted(), bobs);
}

TEST_F(StreamPlaces, AreOneARankAndNobodyOvertakes) {
  const JobId first = Stream();
  const JobId two_ranks = Stream(2);
  EXPECT_EQ(Cause(two_ranks), "cap_team");
  const JobId small = Stream();
  EXPECT_EQ(Cause(small), "cap_team") << "there is room for it, and another was first";
  EXPECT_EQ(Stream(1, false), 0u) << "nor without waiting";
  Cancel(first);
  EXPECT_EQ(Granted(), two_ranks);
  Cancel(two_ranks);
  EXPECT_EQ(Granted(), small);
}

TEST_F(StreamPlaces, AreRefusedToStreamsThatDoNotWait) {
  Stream(), Stream();
  EXPECT_EQ(Stream(1, false), 0u);
  EXPECT_EQ(Refused().code, static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_NE(
      TextOf(Refused()).find("team path: it has as many streams as it may, with at most 2 ranks"),
      std::string::npos);
}

TEST_F(StreamPlaces, ThatATeamNeverHasAreRefusedAtOnce) {
  EXPECT_EQ(Stream(3), 0u);
  EXPECT_EQ(Refused().code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(
      TextOf(Refused()).find("team path: it may have 2 ranks of streams, and the stream has 3"),
      std::string::npos);
  policy.teams["path"].most.streams = 0;
  Apply();
  EXPECT_EQ(Stream(), 0u);
  EXPECT_NE(TextOf(Refused()).find("it may have 0 ranks of streams"), std::string::npos);
  policy.teams["path"].most.jobs = 0;
  Apply();
  EXPECT_EQ(rig.Submit("job", "noop", 0, kAnn), 0u);
  EXPECT_NE(TextOf(Refused()).find("team path: it may have 0 jobs"), std::string::npos);
}

TEST_F(StreamPlaces, AreKeptWhenThePolicyShrinksAndGivenWhenItGrows) {
  const JobId first = Stream(), second = Stream();
  policy.teams["path"].most.streams = 1;
  Apply();
  const JobId third = Stream();
  EXPECT_EQ(Cause(third), "cap_team");
  EXPECT_NE(Cause(second), "cap_team");
  Cancel(first);
  EXPECT_EQ(Granted(), 0u) << "the second has the only one";
  policy.teams["path"].most.streams = 2;
  Apply();
  EXPECT_EQ(Granted(), third);
}

TEST_F(StreamPlaces, StayAsTheyWereOverARestart) {
  const JobId first = Stream();
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kPlan);
  const JobId second = Stream(), third = Stream();
  ASSERT_EQ(Cause(third), "cap_team");
  rig.Restart();
  ASSERT_TRUE(rig.replayed().ok());
  Begin();
  rig.Pass(4'000);
  EXPECT_EQ(Granted(), second);
  EXPECT_EQ(rig.Row(third).state, protocol::JobState::kQueued);
  EXPECT_EQ(Cause(third), "cap_team");
  Cancel(first);
  EXPECT_EQ(Granted(), third);
}

TEST_F(StreamPlaces, AreNotGivenByAHoldAndItsRelease) {
  Stream();
  const JobId second = Stream(), third = Stream();
  rig.Tell(kAnn, protocol::ChangeJob{third, protocol::JobChange::kHold});
  EXPECT_EQ(Cause(third), "held");
  rig.Tell(kAnn, protocol::ChangeJob{third, protocol::JobChange::kRelease});
  EXPECT_EQ(Granted(), 0u);
  EXPECT_EQ(Cause(third), "cap_team");
  Cancel(third);
  Cancel(second);
  EXPECT_EQ(Granted(), 0u);
}

/// A node of two workers with 1 MiB each.
class Needs : public testing::Test {
 protected:
  void SetUp() override { rig.AddAgent(2); }
  /// The refusal; empty when the job was taken.
  std::string Submit(protocol::Resources need) {
    protocol::SubmitJob submit;
    submit.submission_key =
        StrCat(need.cpu_millis, " ", need.gpus, " ", need.memory_bytes, " ", ++submissions_);
    submit.kind = "noop";
    submit.root.op = "root";
    submit.root.resources = need;
    rig.Tell(CoreRig::kOps, submit);
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }

  CoreRig rig;

 private:
  int submissions_ = 0;
};

TEST_F(Needs, BeyondEveryNodeAreRefusedWithWhatThereIs) {
  rig.AddWorker(0);
  rig.AddWorker(1);
  EXPECT_EQ(Submit({1000, 0, 1 << 20}), "");
  EXPECT_EQ(
      Submit({1000, 0, 2 << 20}),
      "submit job: it needs 1.0 cores, 2 MiB, more than a worker of any node has (1.0 cores, 1 "
      "MiB at most): add a node that has as much");
  EXPECT_NE(Submit({1000, 1, 0}).find("it needs 1.0 cores, 1 GPUs, more than"), std::string::npos);
  EXPECT_NE(Submit({2000, 0, 0}).find("it needs 2.0 cores, more than"), std::string::npos);
}

TEST_F(Needs, AreTakenWhileALargerWorkerMayStillCome) {
  EXPECT_EQ(Submit({2000, 0, 0}), "") << "no worker has registered";
  rig.AddWorker(0);
  EXPECT_EQ(Submit({2000, 0, 0}), "") << "one of two has";
  EXPECT_NE(Submit({2000, 0, 2 << 20}), "") << "the node has less memory";
  rig.AddWorker(1);
  EXPECT_NE(Submit({2000, 0, 0}), "");
  rig.Restart();
  rig.Join(2, Role::kWorker, "node");
  protocol::RegisterAgent other;
  other.node = "other";
  rig.Join(3, Role::kWorker, "other");
  rig.Tell(3, other);
  EXPECT_EQ(Submit({2000, 0, 0}), "") << "a node of before the restart is not back";
}

}  // namespace
}  // namespace patchbay::scheduler
