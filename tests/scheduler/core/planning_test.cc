// Streams are planned beside whatever else the workers do, in a lane of their own.
#include <algorithm>

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::kSpawnedBase;
using protocol::TaskLease;

constexpr std::uint64_t kKiB = 1 << 10;
constexpr int kPlannerCrashed = protocol::kPlanningCrashed << 8;  // as waitpid gives it

/// A node of one core, whose one worker has a task of an ingest that goes on.
class Planning : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent(1);
    rig.AddWorker();
    ingest = rig.Submit("ingest");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0),
               std::vector<protocol::TaskSpec>(20, Spec("slide", 1)));
    slide = rig.Granted().at(0);
  }
  ~Planning() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  /// The one lease of the last call.
  TaskLease Only() const {
    const auto granted = rig.Granted();
    EXPECT_EQ(granted.size(), 1u);
    return granted.empty() ? TaskLease{} : granted[0];
  }
  JobId SubmitNeeding(const std::string& key, const std::string& kind, protocol::Resources need) {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = kind;
    submit.root = Spec("root");
    submit.root.resources = need;
    rig.Tell(CoreRig::kOps, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  void Renew(const TaskLease& lease, std::uint64_t progress) {
    rig.Renew(CoreRig::kWorker0, lease.lease, progress);
  }
  /// Whether the job's log counts a death against one of its tasks.
  bool Died(JobId job) {
    rig.Tell(CoreRig::kOps, protocol::FetchLogs{job, 0});
    const auto& lines = rig.Find<protocol::LogsFetched>()->lines;
    return std::any_of(lines.begin(), lines.end(), [](const auto& line) {
      return line.text.find("its worker died") != std::string::npos;
    });
  }
  CoreRig rig;
  JobId ingest = 0;
  TaskLease slide;
};

TEST_F(Planning, DoesNotWaitForOlderJobs) {
  const JobId stream = rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  EXPECT_EQ(plan.task.job, stream);
  EXPECT_TRUE(plan.planning);
  EXPECT_FALSE(slide.planning);
  rig.Finish(CoreRig::kWorker0, plan, {}, {}, kPlan);
  EXPECT_TRUE(rig.Granted().empty()) << "the other lane is as full as before";
  EXPECT_EQ(rig.Row(stream).tasks_done, 1u);
}

TEST_F(Planning, OfAllPartsOfAStreamIsDoneBesideAnIngest) {
  const JobId stream = rig.Submit("stream", "stream");
  rig.Finish(CoreRig::kWorker0, Only(),
             {Spec("stream.open"), Spec("stream.open"),
              Spec("stream.join", 0, {kSpawnedBase, kSpawnedBase + 1})});
  for (const char* op : {"stream.open", "stream.open", "stream.join"}) {
    const TaskLease part = Only();
    EXPECT_EQ(part.op, op);
    EXPECT_TRUE(part.planning);
    rig.Finish(CoreRig::kWorker0, part, {}, {}, kPlan);
  }
  EXPECT_EQ(rig.Row(stream).tasks_done, 4u);
  EXPECT_EQ(rig.Row(ingest).tasks_running, 1u) << "the slide was never given up";
}

TEST_F(Planning, IsDoneOneAtATimeByAWorker) {
  rig.Submit("one", "stream");
  const TaskLease one = Only();
  const JobId two = rig.Submit("two", "stream");
  EXPECT_TRUE(rig.Granted().empty());
  rig.Finish(CoreRig::kWorker0, one, {}, {}, kPlan);
  EXPECT_EQ(Only().task.job, two);
}

TEST_F(Planning, OfTheHigherPriorityGoesFirst) {
  rig.Submit("one", "stream");
  const TaskLease one = Only();
  rig.Submit("low", "stream", -1);
  const JobId high = rig.Submit("high", "stream", 1);
  rig.Finish(CoreRig::kWorker0, one, {}, {}, kPlan);
  EXPECT_EQ(rig.Granted().at(0).task.job, high);
}

TEST_F(Planning, DoesNotWaitForShards) {
  const JobId stream = rig.Submit("stream", "stream");
  rig.Finish(CoreRig::kWorker0, Only(), {}, {}, kPlan);
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  protocol::AttachTrainer attach;
  attach.stream = stream;
  attach.trainer_incarnation = 5;
  attach.endpoint.host_identity = "host";
  attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, attach);
  EXPECT_EQ(rig.Shards().size(), 2u);
  rig.Submit("second", "stream");
  EXPECT_TRUE(Only().planning);
}

TEST_F(Planning, IsTheLaneOfNoTaskThatNeedsAGpu) {
  rig.AddAgent(2, 1, 1);
  rig.AddGpuWorker(1);
  rig.Submit("batch");
  ASSERT_EQ(rig.Granted().size(), 0u) << "slides go first";
  SubmitNeeding("gpu", "stream", {1000, 1, 0});
  EXPECT_TRUE(rig.Granted().empty()) << "the worker with the GPU has a slide";
}

TEST_F(Planning, IsGivenBackWhenItsJobIsCancelled) {
  const JobId stream = rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  rig.Tell(CoreRig::kOps, protocol::CancelJob{stream});
  ASSERT_NE(rig.Find<protocol::LeasesRevoked>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>()->leases, std::vector{plan.lease});
  rig.Submit("next", "stream");
  EXPECT_TRUE(Only().planning);
}

TEST_F(Planning, IsWaitedForByADrain) {
  rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  rig.Tell(CoreRig::kWorker0, protocol::Drain{});
  rig.Finish(CoreRig::kWorker0, slide);
  EXPECT_EQ(rig.Find<protocol::Drained>(), nullptr);
  rig.Finish(CoreRig::kWorker0, plan, {}, {}, kPlan);
  EXPECT_NE(rig.Find<protocol::Drained>(), nullptr);
}

TEST_F(Planning, ThatCrashedMakesNoSuspectsBesideIt) {
  const JobId stream = rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  rig.Exited(0, 100, kPlannerCrashed);
  rig.AddWorker(0, 200);
  EXPECT_EQ(Only().task, plan.task) << "the suspect runs alone";
  for (std::uint64_t life = 1; life <= kMaxSoloDeaths; ++life) {
    EXPECT_EQ(rig.Row(stream).state, JobState::kRunning) << "after " << life;
    rig.Exited(0, 100 + 100 * life, kPlannerCrashed);
    rig.AddWorker(0, 200 + 100 * life);
  }
  EXPECT_EQ(Only().task.job, ingest);
  EXPECT_EQ(rig.Row(stream).state, JobState::kFailed);
  EXPECT_FALSE(Died(ingest));
  EXPECT_TRUE(Died(stream));
  rig.Submit("next", "stream");
  EXPECT_TRUE(Only().planning) << "the slide is no suspect: it does not run alone";
}

TEST_F(Planning, AndWhatRanBesideItAreSuspectsWhenNobodyKnowsWhoseThreadCrashed) {
  const JobId stream = rig.Submit("stream", "stream");
  rig.Exited(0, 100, SIGSEGV);
  rig.AddWorker(0, 200);
  const TaskLease first = Only();
  EXPECT_EQ(first.task, slide.task);
  rig.Submit("next", "stream");
  EXPECT_TRUE(rig.Granted().empty()) << "a suspect runs alone";
  rig.Finish(CoreRig::kWorker0, first);
  EXPECT_EQ(Only().task.job, stream);
  EXPECT_FALSE(Died(ingest));
  EXPECT_FALSE(Died(stream)) << "no death counts that was not a solo one";
}

TEST_F(Planning, IsNotBelievedToHaveCrashedWhereThereWasNone) {
  rig.Exited(0, 100, kPlannerCrashed);
  for (std::uint64_t life = 1; life < kMaxSoloDeaths; ++life) {
    rig.AddWorker(0, 100 + 100 * life);
    rig.Exited(0, 100 + 100 * life, kPlannerCrashed);
  }
  EXPECT_TRUE(Died(ingest));
  EXPECT_NE(rig.Row(ingest).tasks_failed, 0u);
}

TEST_F(Planning, ThatHangsMakesNoSuspectsBesideIt) {
  rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  Renew(plan, 1);
  for (std::uint64_t progress = 1; progress < 6; ++progress) {
    rig.Pass(2'500, {CoreRig::kAgent, CoreRig::kWorker0});
    Renew(slide, progress);
  }
  ASSERT_EQ(rig.core().gauges().leases_expired, 1u);
  rig.Exited(0, 100, SIGKILL);
  rig.AddWorker(0, 200);
  EXPECT_EQ(Only().task, plan.task) << "the suspect runs alone";
  rig.Finish(CoreRig::kWorker0, Only(), {}, {}, kPlan);
  EXPECT_EQ(Only().task.job, ingest);
  rig.Submit("next", "stream");
  EXPECT_TRUE(Only().planning) << "the slide is no suspect";
}

TEST_F(Planning, IsNoSuspectWhenTheTaskBesideItHangs) {
  rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  Renew(slide, 1);
  for (std::uint64_t progress = 1; progress < 6; ++progress) {
    rig.Pass(2'500, {CoreRig::kAgent, CoreRig::kWorker0});
    Renew(plan, progress);
  }
  ASSERT_EQ(rig.core().gauges().leases_expired, 1u);
  rig.Exited(0, 100, SIGKILL);
  rig.AddWorker(0, 200);
  EXPECT_EQ(Only().task, slide.task);
  rig.Finish(CoreRig::kWorker0, Only());
  const auto granted = rig.Granted();
  ASSERT_GE(granted.size(), 2u) << "the plan, and the next slides beside it";
  EXPECT_TRUE(granted[0].planning);
  EXPECT_EQ(granted[1].task.job, ingest);
}

TEST_F(Planning, GoesOnBesideItsIngestAfterARestart) {
  const JobId stream = rig.Submit("stream", "stream");
  const TaskLease plan = Only();
  rig.Restart();
  rig.AddAgent(1);
  rig.AddWorker(0, 100,
                {{slide.lease, false, slide.task, 0, {}}, {plan.lease, false, plan.task, 0, {}}});
  EXPECT_TRUE(rig.Granted().empty()) << "both lanes are taken";
  EXPECT_EQ(rig.Row(stream).tasks_running + rig.Row(ingest).tasks_running, 2u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
  rig.Finish(CoreRig::kWorker0, plan, {}, {}, kPlan);
  EXPECT_EQ(rig.Row(stream).tasks_done, 1u);
  rig.Finish(CoreRig::kWorker0, slide);
  EXPECT_EQ(rig.Row(ingest).tasks_done, 2u);
}

/// A node of two cores and 1 MiB, both workers idle and with 1 MiB each.
class PlanningMemory : public Planning {
 protected:
  void SetUp() override {
    rig.AddAgent(2);
    rig.AddWorker(0);
    rig.AddWorker(1);
  }
};

TEST_F(PlanningMemory, IsKeptFreeByTasksThatRunBesideOthers) {
  SubmitNeeding("a", "noop", {1000, 0, 600 * kKiB});
  const TaskLease a = Only();
  SubmitNeeding("b", "noop", {1000, 0, 300 * kKiB});
  EXPECT_TRUE(rig.Granted().empty()) << "900 of 1024 leave less than an eighth";
  const JobId c = SubmitNeeding("c", "noop", {1000, 0, 296 * kKiB});
  EXPECT_EQ(Only().task.job, c) << "896 leave an eighth";
  rig.Submit("stream", "stream");
  EXPECT_TRUE(Only().planning);
}

TEST_F(PlanningMemory, IsTakenByATaskThatLeavesNoneAloneAndPlanningGoesNext) {
  SubmitNeeding("large", "noop", {1000, 0, 1000 * kKiB});
  const TaskLease large = Only();
  SubmitNeeding("larger", "noop", {1000, 0, 1024 * kKiB});
  rig.Submit("stream", "stream");
  EXPECT_TRUE(rig.Granted().empty());
  rig.Finish(CoreRig::kWorker0, large);
  EXPECT_TRUE(Only().planning) << "nothing else fits beside it";
}

TEST_F(PlanningMemory, OfTwoWorkersIsNoMoreThanTheirNodeHas) {
  SubmitNeeding("first", "stream", {1000, 0, 600 * kKiB});
  const TaskLease first = Only();
  const bool is_first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
  const JobId second = SubmitNeeding("second", "stream", {1000, 0, 600 * kKiB});
  EXPECT_TRUE(rig.Granted().empty()) << "1200 of 1024";
  rig.Finish(is_first ? CoreRig::kWorker0 : CoreRig::kWorker0 + 1, first);
  EXPECT_EQ(Only().task.job, second);
}

TEST_F(PlanningMemory, OfOneThatNeedsMoreThanThereIsIsNeverPromised) {
  SubmitNeeding("stream", "stream", {1000, 0, 2048 * kKiB});
  EXPECT_TRUE(rig.Granted().empty());
  SubmitNeeding("cores", "stream", {64'000, 0, 0});
  EXPECT_TRUE(rig.Granted().empty());
  rig.Submit("next", "stream");
  EXPECT_TRUE(Only().planning) << "it holds up its like alone";
}

}  // namespace
}  // namespace patchbay::scheduler
