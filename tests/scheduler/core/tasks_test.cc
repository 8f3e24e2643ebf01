#include <algorithm>

#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::kSpawnedBase;

TEST(Jobs, TheSameSubmissionKeyGivesTheSameJob) {
  CoreRig rig;
  const JobId first = rig.Submit("key");
  EXPECT_NE(first, 0u);
  EXPECT_EQ(rig.Submit("key"), first);
  EXPECT_NE(rig.Submit("other"), first);
}

TEST(Jobs, AreAcknowledgedOnlyWhenDurable) {
  CoreRig rig(false);
  EXPECT_EQ(rig.Submit("key"), 0u);
  rig.sent().clear();
  rig.Sync();
  EXPECT_NE(rig.Find<protocol::JobSubmitted>(), nullptr);
}

TEST(Jobs, AreLeasedOnlyWhenTheirSubmissionIsDurable) {
  CoreRig rig(false);
  rig.Sync();
  rig.AddAgent();
  rig.AddWorker();
  rig.Sync();
  rig.Submit("key");
  EXPECT_TRUE(rig.Granted().empty());
  rig.Sync();
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST(Jobs, AreNotLeasedOnceTheSchedulerStopsButReportsStillCount) {
  CoreRig rig;
  const JobId first = rig.Submit("first");
  rig.Submit("second");
  rig.AddAgent(1);
  rig.AddWorker();
  const auto granted = rig.Granted();
  ASSERT_EQ(granted.size(), 1u);
  rig.core().StopGranting();
  rig.sent().clear();
  rig.Finish(CoreRig::kWorker0, granted[0]);
  EXPECT_TRUE(rig.Granted().empty());
  EXPECT_EQ(rig.Row(first).state, JobState::kDone);
}

TEST(Jobs, HigherPriorityGoesFirstThenTheOlderOne) {
  CoreRig rig;
  const JobId low = rig.Submit("low", "noop", 0), older = rig.Submit("older", "noop", 5),
              newer = rig.Submit("newer", "noop", 5);
  rig.AddAgent(1);
  rig.AddWorker();
  std::vector<JobId> order;
  while (order.size() < 3) {
    const auto granted = rig.Granted();
    ASSERT_FALSE(granted.empty());
    for (const auto& lease : granted) order.push_back(lease.task.job);
    if (order.size() < 3) rig.Finish(CoreRig::kWorker0, granted[0]);
  }
  EXPECT_EQ(order, (std::vector<JobId>{older, newer, low}));
}

TEST(Jobs, OfOthersAreNotSeenBySubmitters) {
  CoreRig rig;
  const JobId job = rig.Submit("key");
  rig.Join(90, Role::kSubmitter, "somebody");
  rig.Tell(90, protocol::CancelJob{job});
  ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::RequestFailed>()->outcome.code,
            static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(rig.Row(job).state, JobState::kQueued);
}

class Spawned : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key");
    root = rig.Granted().at(0);
  }
  protocol::TaskLease Only() {
    const auto granted = rig.Granted();
    EXPECT_EQ(granted.size(), 1u);
    return granted.empty() ? protocol::TaskLease{} : granted[0];
  }
  CoreRig rig;
  JobId job = 0;
  protocol::TaskLease root;
};

TEST_F(Spawned, TaskGetsTheResultsOfItsDependenciesInOrder) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("a", 1), Spec("b", 1, {kSpawnedBase, 0})}, {},
             "of root");
  rig.Finish(CoreRig::kWorker0, Only(), {}, {}, "of a");
  const protocol::TaskLease b = Only();
  EXPECT_EQ(b.op, "b");
  EXPECT_EQ(b.inputs, (std::vector<std::string>{"of a", "of root"}));
  EXPECT_EQ(b.submitter, "ops");
  EXPECT_EQ(b.write_prefixes, std::vector<std::string>{"/out"});
}

TEST_F(Spawned, BadInputEndsItsGroupAndLeavesOthersAlone) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("bad", 1), Spec("same slide", 1), Spec("other", 2)});
  const protocol::TaskLease bad = Only();
  rig.Finish(CoreRig::kWorker0, bad, {}, Failure(absl::StatusCode::kDataLoss));
  const protocol::TaskLease other = Only();
  EXPECT_EQ(other.op, "other");
  rig.Finish(CoreRig::kWorker0, other);
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, JobState::kPartlyFailed);
  ASSERT_EQ(row.failed.size(), 1u);
  EXPECT_EQ(row.failed[0].task, bad.task);
}

TEST_F(Spawned, FailureOfTheJobsOwnGroupEndsTheJob) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("own"), Spec("slide", 1)});
  rig.Finish(CoreRig::kWorker0, Only(), {}, Failure(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
  EXPECT_TRUE(rig.Granted().empty());
}

TEST_F(Spawned, SummaryRunsAfterEverythingElseEndedHowever) {
  protocol::TaskSpec summary = Spec("summary");
  summary.after_failures = true;
  rig.Finish(CoreRig::kWorker0, root, {summary, Spec("bad", 1), Spec("good", 2)});
  rig.Finish(CoreRig::kWorker0, Only(), {}, Failure(absl::StatusCode::kNotFound));
  rig.Finish(CoreRig::kWorker0, Only());
  EXPECT_EQ(Only().op, "summary");
}

TEST_F(Spawned, TaskThatRunsAfterFailuresGetsAnEmptyInputForThem) {
  protocol::TaskSpec after = Spec("after", 9, {kSpawnedBase, kSpawnedBase + 1});
  after.after_failures = true;
  rig.Finish(CoreRig::kWorker0, root, {Spec("bad", 1), Spec("good", 2), after});
  rig.Finish(CoreRig::kWorker0, Only(), {}, Failure(absl::StatusCode::kDataLoss));
  rig.Finish(CoreRig::kWorker0, Only(), {}, {}, "fine");
  EXPECT_EQ(Only().inputs, (std::vector<std::string>{"", "fine"}));
}

TEST_F(Spawned, PassingErrorsAreTriedAgainLaterAndNotForever) {
  protocol::TaskLease lease = root;
  for (int attempt = 1; attempt < 5; ++attempt) {
    rig.Finish(CoreRig::kWorker0, lease, {}, Failure(absl::StatusCode::kUnavailable));
    EXPECT_TRUE(rig.Granted().empty()) << "it must wait first";
    rig.Pass(500 << attempt);
    lease = Only();
  }
  rig.Finish(CoreRig::kWorker0, lease, {}, Failure(absl::StatusCode::kUnavailable));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(Spawned, RetryRunsOnlyWhatDidNotSucceed) {
  rig.Finish(CoreRig::kWorker0, root,
             {Spec("bad", 1), Spec("next", 1, {kSpawnedBase}), Spec("good", 2)});
  rig.Finish(CoreRig::kWorker0, Only(), {}, Failure(absl::StatusCode::kDataLoss));
  rig.Finish(CoreRig::kWorker0, Only());
  rig.Tell(CoreRig::kOps, protocol::RetryJob{job}, 8);
  ASSERT_NE(rig.Find<protocol::JobRetried>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::JobRetried>()->tasks, 2u);
  rig.Finish(CoreRig::kWorker0, Only());
  rig.Finish(CoreRig::kWorker0, Only());
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

TEST_F(Spawned, RepeatedReportIsAcknowledgedAndChangesNothing) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("a", 1)});
  const std::uint64_t records = rig.core().last_sequence();
  rig.Finish(CoreRig::kWorker0, root, {Spec("a", 1)});
  EXPECT_EQ(rig.core().last_sequence(), records);
  ASSERT_NE(rig.Find<protocol::TasksCommitted>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::TasksCommitted>()->leases.size(), 1u);
}

TEST_F(Spawned, AWorkerCannotReportAnothersLease) {
  rig.AddWorker(1);
  rig.Finish(CoreRig::kWorker0 + 1, root);
  EXPECT_EQ(rig.Row(job).tasks_done, 0u);
  EXPECT_EQ(rig.core().gauges().stale_reports, 1u);
}

TEST_F(Spawned, MalformedSpawnFailsTheTask) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("a", 1, {kSpawnedBase + 5})});
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(Spawned, CancelOfAJobThatIsDoneIsRefusedAndOfACancelledOneIsNot) {
  const JobId done = rig.Submit("done");
  rig.Tell(CoreRig::kOps, protocol::CancelJob{done});
  EXPECT_NE(rig.Find<protocol::JobCancelled>(), nullptr);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{done}, 8);
  EXPECT_NE(rig.Find<protocol::JobCancelled>(), nullptr) << "it is what was asked for";
  rig.Finish(CoreRig::kWorker0, root, {});
  ASSERT_EQ(rig.Row(job).state, JobState::kDone);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job}, 9);
  const auto* refused = rig.Find<protocol::RequestFailed>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->outcome.code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(TextOf(refused->outcome), StrCat("cancel job: ", job, ": it has ended: done"));
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

TEST_F(Spawned, CancelRevokesWhatRuns) {
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  const auto* revoked = rig.FindFor<protocol::LeasesRevoked>(CoreRig::kWorker0);
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->leases, std::vector<LeaseNumber>{root.lease});
  EXPECT_EQ(rig.Row(job).state, JobState::kCancelled);
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Spawned, TinyTasksGoOutByHundredsLongOnesOneByOne) {
  std::vector<protocol::TaskSpec> many(1000, Spec("tiny", 1));
  rig.Finish(CoreRig::kWorker0, root, many);
  std::size_t most = 0;
  for (int round = 0; round < 12; ++round) {
    const auto granted = rig.Granted();
    if (granted.empty()) break;
    most = std::max(most, granted.size());
    protocol::TasksFinished finished;
    for (const auto& lease : granted)
      finished.items.push_back({lease.lease, lease.task, {}, "", {}, 0, 0});
    rig.Tell(CoreRig::kWorker0, finished);
  }
  EXPECT_GE(most, 256u);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

TEST(Resources, NodesAndWorkersAreNeverGivenMoreThanTheyHave) {
  CoreRig rig;
  rig.AddAgent(1);
  rig.AddWorker(0);
  rig.AddWorker(1);
  rig.Submit("a");
  EXPECT_EQ(rig.Granted().size(), 1u);
  const protocol::TaskLease first = rig.Granted().at(0);
  rig.Submit("b");
  EXPECT_TRUE(rig.Granted().empty()) << "the node has one core";
  rig.Finish(CoreRig::kWorker0, first);
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST(Resources, ATaskNobodyHasRoomForHoldsUpOnlyItsLike) {
  CoreRig rig;
  rig.AddAgent();
  rig.AddWorker();
  protocol::SubmitJob gpu;
  gpu.submission_key = "gpu";
  gpu.kind = "noop";
  gpu.root = Spec("gpu");
  gpu.root.resources.gpus = 1;
  gpu.priority = 9;
  rig.Tell(CoreRig::kOps, gpu);
  EXPECT_TRUE(rig.Granted().empty());
  rig.Submit("cpu");
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST(JobPages, NameEveryJobOnceNewestFirst) {
  CoreRig rig;
  constexpr JobId kJobs = 450;
  for (JobId i = 1; i <= kJobs; ++i) ASSERT_NE(rig.Submit(StrCat("key ", i)), 0u);
  std::vector<JobId> seen;
  for (JobId before = 0;; before = seen.back()) {
    rig.Tell(CoreRig::kOps, protocol::DescribeJobs{{}, before});
    const auto* described = rig.Find<protocol::JobsDescribed>();
    ASSERT_NE(described, nullptr);
    if (described->jobs.empty()) break;
    for (const protocol::JobRow& row : described->jobs) seen.push_back(row.job);
    ASSERT_LE(seen.size(), kJobs);
  }
  EXPECT_EQ(seen.size(), kJobs);
  EXPECT_TRUE(std::is_sorted(seen.rbegin(), seen.rend()));
}

TEST(Roles, GateEveryMessage) {
  CoreRig rig;
  rig.Join(90, Role::kSubmitter, "user");
  rig.Join(91, Role::kTrainer, "trainer");
  const auto refused = [&](PeerId peer, Body body) {
    rig.Tell(peer, std::move(body));
    const auto* failed = rig.FindFor<protocol::RequestFailed>(peer);
    return failed != nullptr &&
           failed->outcome.code == static_cast<int>(absl::StatusCode::kPermissionDenied);
  };
  EXPECT_TRUE(refused(90, protocol::RegisterAgent{}));
  EXPECT_TRUE(refused(90, protocol::ShutDown{}));
  EXPECT_TRUE(refused(91, protocol::TasksFinished{}));
  EXPECT_TRUE(refused(CoreRig::kAgent, protocol::SubmitJob{}));
  protocol::RegisterAgent other;
  other.node = "another node";
  EXPECT_TRUE(refused(CoreRig::kAgent, other)) << "the key is for one node";
}

}  // namespace
}  // namespace patchbay::scheduler
