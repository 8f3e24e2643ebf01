// Priority, hold and release of jobs that are queued or run.
#include <gtest/gtest.h>

#include "scheduler/state/job_table.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::ChangeJob;
using protocol::JobChange;
using protocol::JobChanged;
using protocol::TaskLease;

/// One worker, which has a task of `first`; `second` waits behind it.
class JobChanges : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent(1);
    rig.AddWorker();
    rig.Join(kAnn, Role::kSubmitter, "ann");
    rig.Join(kBob, Role::kSubmitter, "bob");
    first = SubmitAs(CoreRig::kOps, "first");
    running = rig.Granted().at(0);
    second = SubmitAs(CoreRig::kOps, "second");
    third = SubmitAs(CoreRig::kOps, "third");
  }
  ~JobChanges() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  /// The refusal; "" when the job was changed.
  std::string Change(JobId job, JobChange change, std::int32_t priority = 0,
                     PeerId peer = CoreRig::kOps) {
    rig.Tell(peer, ChangeJob{job, change, priority});
    if (rig.FindFor<JobChanged>(peer) != nullptr) return "";
    const auto* failed = rig.FindFor<protocol::RequestFailed>(peer);
    return failed == nullptr ? "no answer" : TextOf(failed->outcome);
  }
  /// The job that gets the worker next.
  JobId Next() {
    rig.Finish(CoreRig::kWorker0, running);
    const auto granted = rig.Granted();
    if (granted.empty()) return 0;
    running = granted[0];
    return running.task.job;
  }
  /// An op of its own, never measured: a worker gets one task at a time.
  JobId SubmitAs(PeerId peer, const std::string& key) {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = "noop";
    submit.root = Spec(key);
    rig.Tell(peer, submit);
    return rig.Find<protocol::JobSubmitted>()->job;
  }

  CoreRig rig;
  JobId first = 0, second = 0, third = 0;
  TaskLease running;
};

TEST_F(JobChanges, AQueuedJobMovesWithItsPriority) {
  EXPECT_EQ(Change(third, JobChange::kPriority, 5), "");
  EXPECT_EQ(rig.Row(third).priority, 5);
  EXPECT_EQ(Next(), third);
  EXPECT_EQ(Next(), second);
}

TEST_F(JobChanges, AHeldJobStartsNothingUntilItIsReleased) {
  EXPECT_EQ(Change(second, JobChange::kHold), "");
  EXPECT_TRUE(rig.Row(second).on_hold);
  EXPECT_EQ(Next(), third);
  EXPECT_EQ(Next(), 0u) << "the held job alone is left";
  EXPECT_EQ(Change(second, JobChange::kRelease), "");
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, second);
}

TEST_F(JobChanges, RunningWorkOfAHeldJobEndsByItself) {
  EXPECT_EQ(Change(first, JobChange::kHold), "");
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr);
  rig.Finish(CoreRig::kWorker0, running, {Spec(), Spec()});
  EXPECT_EQ(rig.Granted().at(0).task.job, second) << "its commit counts, what it spawned waits";
  EXPECT_EQ(rig.Row(first).tasks_done, 1u);
  EXPECT_EQ(rig.Row(first).tasks_running, 0u);
}

TEST_F(JobChanges, WhatAWorkerHasNotBegunIsTakenBackFromIt) {
  for (const JobId other : {second, third}) EXPECT_EQ(Change(other, JobChange::kHold), "");
  rig.Finish(CoreRig::kWorker0, running, {Spec("first")});
  running = rig.Granted().at(0);
  rig.Finish(CoreRig::kWorker0, running, {Spec("first"), Spec("first"), Spec("first")});
  const JobId many = first;
  const auto held = rig.Granted();
  ASSERT_EQ(held.size(), 3u) << "its op is measured: tasks queue at the worker";
  EXPECT_EQ(Change(many, JobChange::kHold), "");
  ASSERT_NE(rig.Find<protocol::LeasesRevoked>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>()->leases.size(), held.size() - 1);
  EXPECT_EQ(rig.Row(many).tasks_running, 1u);
}

TEST_F(JobChanges, OutliveARestartAndACompaction) {
  EXPECT_EQ(Change(second, JobChange::kHold), "");
  EXPECT_EQ(Change(third, JobChange::kPriority, -7), "");
  const std::string snapshot = rig.core().EncodeSnapshot();
  JobTable table;
  ASSERT_TRUE(table.Decode(snapshot).ok());
  EXPECT_TRUE(table.Find(second)->on_hold);
  rig.Restart();
  EXPECT_EQ(rig.core().EncodeSnapshot().size(), snapshot.size());
  EXPECT_TRUE(rig.Row(second).on_hold);
  EXPECT_EQ(rig.Row(third).priority, -7);
  rig.AddAgent(1);
  rig.AddWorker(0, 200);
  rig.Pass(4000, {CoreRig::kAgent, CoreRig::kWorker0});
  running = rig.Granted().at(0);
  EXPECT_EQ(running.task.job, first);
  EXPECT_EQ(Next(), third);
  EXPECT_EQ(Next(), 0u) << "the second is held";
}

TEST_F(JobChanges, AnEndedJobIsForgottenAndAnotherIsNot) {
  EXPECT_NE(Change(second, JobChange::kForget).find("it has not ended: queued"), std::string::npos);
  rig.Finish(CoreRig::kWorker0, running);
  running = rig.Granted().at(0);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{second});
  const std::size_t bytes = rig.core().EncodeSnapshot().size();
  for (const JobId ended : {first, second}) EXPECT_EQ(Change(ended, JobChange::kForget), "");
  for (const JobId gone : {first, second}) {
    EXPECT_NE(Change(gone, JobChange::kForget).find("no such job"), std::string::npos);
  }
  EXPECT_LT(rig.core().EncodeSnapshot().size(), bytes);
  EXPECT_TRUE(AsksForErasure(rig.disk().back().bytes));
  EXPECT_EQ(SubmitAs(CoreRig::kOps, "first"), third + 1)
      << "its key and its number are no longer its";
  rig.Finish(CoreRig::kWorker0, running);  // its lease is void
  rig.Restart();
  EXPECT_NE(Change(second, JobChange::kForget).find("no such job"), std::string::npos);
  EXPECT_EQ(rig.Row(third).job, third);
}

TEST_F(JobChanges, AskedTwiceAreOne) {
  EXPECT_EQ(Change(second, JobChange::kHold), "");
  const std::size_t records = rig.disk().size();
  EXPECT_EQ(Change(second, JobChange::kHold), "");
  EXPECT_EQ(Change(second, JobChange::kPriority, 0), "");
  EXPECT_EQ(rig.disk().size(), records);
}

TEST_F(JobChanges, PrioritiesHaveTheLimitsOfASubmission) {
  EXPECT_NE(Change(first, JobChange::kPriority, 101).find("the priority 101 is not in -100..100"),
            std::string::npos);
  EXPECT_NE(Change(first, JobChange::kPriority, -101), "");
  const JobId anns = SubmitAs(kAnn, "a");
  EXPECT_NE(Change(anns, JobChange::kPriority, 1, kAnn).find("above 0 is for operators"),
            std::string::npos);
  EXPECT_EQ(Change(anns, JobChange::kPriority, -100, kAnn), "");
  EXPECT_EQ(rig.Row(anns).priority, -100);
}

TEST_F(JobChanges, OfAnothersJobAreRefusedAsThoseOfNone) {
  const JobId anns = SubmitAs(kAnn, "a");
  for (const JobChange change :
       {JobChange::kHold, JobChange::kRelease, JobChange::kPriority, JobChange::kForget}) {
    EXPECT_NE(Change(anns, change, 0, kBob).find("no such job"), std::string::npos);
    EXPECT_NE(Change(99, change, 0, kBob).find("no such job"), std::string::npos);
  }
  EXPECT_FALSE(rig.Row(anns).on_hold);
}

TEST_F(JobChanges, OfAnEndedJobAreRefusedAndARetryOfAHeldOneRuns) {
  EXPECT_EQ(Change(second, JobChange::kHold), "");
  rig.Tell(CoreRig::kOps, protocol::CancelJob{second});
  EXPECT_NE(Change(second, JobChange::kRelease).find("it has ended: cancelled"), std::string::npos);
  EXPECT_NE(Change(second, JobChange::kPriority, 3).find("it has ended"), std::string::npos);
  rig.Tell(CoreRig::kOps, protocol::RetryJob{second});
  EXPECT_EQ(Next(), second);
}

class HeldStream : public Streaming {};

TEST_F(HeldStream, GetsNoShardsAndItsTrainerWaitsWithAReason) {
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kHold});
  Attach();
  EXPECT_TRUE(rig.Shards().empty());
  rig.Pass(40'000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  EXPECT_TRUE(rig.Shards().empty());
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, protocol::JobState::kRunning) << "a held stream is not starved";
  EXPECT_NE(row.waits_for.find("patchbay release"), std::string::npos);
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kRelease});
  EXPECT_EQ(rig.Shards().size(), 2u);
}

TEST_F(HeldStream, IsForgottenOnceItHasEnded) {
  Attach();
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kForget});
  EXPECT_EQ(rig.Find<JobChanged>(), nullptr);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kForget});
  EXPECT_NE(rig.Find<JobChanged>(), nullptr);
  Return(shards[0]);  // late
  Count(shards[1]);
  rig.Pass(40'000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  EXPECT_EQ(rig.Row(job).job, 0u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(HeldStream, FinishesTheShardsThatItsWorkersHave) {
  Attach();
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kHold});
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr) << "what is made ends by itself";
  Return(shards[0]);
  Count(shards[0]);
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
