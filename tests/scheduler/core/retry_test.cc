// The tasks that `patchbay retry` runs again.
#include <gtest/gtest.h>

#include "scheduler/state/records.h"
#include "scheduler/state/wire.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::kSpawnedBase;

protocol::TaskSpec After(const std::string& op, std::uint32_t group,
                         std::vector<std::uint32_t> depends_on = {}) {
  protocol::TaskSpec spec = Spec(op, group, std::move(depends_on));
  spec.after_failures = true;
  return spec;
}

class Retried : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key");
    root = Only();
  }
  /// The one task that the last call leased.
  protocol::TaskLease Only() {
    const auto granted = rig.Granted();
    EXPECT_EQ(granted.size(), 1u);
    return granted.empty() ? protocol::TaskLease{} : granted[0];
  }
  /// Ends the task that was just leased and returns the next.
  protocol::TaskLease End(std::vector<protocol::TaskSpec> spawned = {}, Outcome outcome = {},
                          const std::string& result = "") {
    const protocol::TaskLease lease = Only();
    rig.Finish(CoreRig::kWorker0, lease, std::move(spawned), std::move(outcome), result);
    return lease;
  }
  std::uint64_t Retry(std::uint64_t request = 8) {
    rig.Tell(CoreRig::kOps, protocol::RetryJob{job}, request);
    const auto* retried = rig.Find<protocol::JobRetried>();
    EXPECT_NE(retried, nullptr);
    return retried == nullptr ? 0 : retried->tasks;
  }
  /// Does not finish the leases of the last call.
  protocol::JobRow Row() {
    const std::vector<SendAction> kept = rig.sent();
    const protocol::JobRow row = rig.Row(job);
    rig.sent() = kept;
    return row;
  }
  static std::vector<protocol::TaskSpec> Slide(std::uint32_t group) {
    return {Spec("shard", group), Spec("finalise", group, {kSpawnedBase})};
  }
  /// A slide whose first shard fails, and the summary of the job.
  void FailOneSlide() {
    protocol::TaskSpec open = Spec("open", 1);
    open.payload = "which slide";
    rig.Finish(CoreRig::kWorker0, root, {open, After("summary", 0)});
    End(Slide(1));
    EXPECT_EQ(End({}, Failure(absl::StatusCode::kDataLoss)).op, "shard");
    first_summary = End({}, {}, "one is missing");
    EXPECT_EQ(first_summary.op, "summary");
    EXPECT_EQ(Row().state, JobState::kFailed);
  }
  /// The worker is gone with its node's agent: the journal must suffice.
  void Restart() {
    rig.Restart();
    ASSERT_TRUE(rig.replayed().ok());
    rig.AddAgent();
    rig.AddWorker(0, 500);
    rig.Pass(200);
  }

  CoreRig rig;
  JobId job = 0;
  protocol::TaskLease root, first_summary;
};

TEST_F(Retried, SlideStartsOverFromTheTaskThatOpenedItAndTheSummaryComesLast) {
  FailOneSlide();
  EXPECT_EQ(Retry(), 2u);
  EXPECT_EQ(Row().tasks_total, 3u) << "what the slide's first try had spawned is superseded";
  const protocol::TaskLease open = End(Slide(1));
  EXPECT_EQ(open.op, "open");
  EXPECT_EQ(open.payload, "which slide");
  EXPECT_EQ(End({}, {}, "whole").op, "shard");
  const protocol::TaskLease finalise = End();
  EXPECT_EQ(finalise.op, "finalise");
  EXPECT_EQ(finalise.inputs, std::vector<std::string>{"whole"});
  EXPECT_EQ(End({Spec("clean")}, {}, "none is missing").op, "summary");
  EXPECT_EQ(End().op, "clean");
  const protocol::JobRow row = Row();
  EXPECT_EQ(row.state, JobState::kDone);
  EXPECT_TRUE(row.failed.empty());
  EXPECT_EQ(row.tasks_done, row.tasks_total);
  EXPECT_EQ(row.weight_done, row.weight_total);
}

TEST_F(Retried, IsTheSameFromASnapshot) {
  FailOneSlide();
  Retry();
  Core other;
  ASSERT_TRUE(other.LoadSnapshot(rig.core().last_sequence(), rig.core().EncodeSnapshot()).ok());
  EXPECT_EQ(other.DurableStateHash(), rig.core().DurableStateHash());
  End(Slide(1));
  const JournalRecord& commit = rig.disk().back();
  ASSERT_TRUE(other.Replay(commit.sequence, commit.bytes).ok());
  EXPECT_EQ(other.DurableStateHash(), rig.core().DurableStateHash());
}

TEST_F(Retried, SurvivesTheSchedulerAndIsCarriedOutOnce) {
  FailOneSlide();
  EXPECT_EQ(Retry(8), 2u);
  Restart();
  const std::uint64_t records = rig.core().last_sequence();
  const auto granted = rig.Granted();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].op, "open");
  rig.Finish(CoreRig::kWorker0, granted[0], {}, Failure(absl::StatusCode::kDataLoss));
  EXPECT_EQ(End({}, {}, "missing still").op, "summary");
  EXPECT_EQ(Retry(8), 2u) << "the same question";
  EXPECT_TRUE(rig.Granted().empty());
  EXPECT_EQ(rig.core().last_sequence(), records + 2);
  EXPECT_EQ(Retry(9), 2u) << "another one";
  EXPECT_EQ(Only().op, "open");
}

TEST_F(Retried, WhatWasReportedBeforeItIsNoOutcomeOfTheSecondRun) {
  FailOneSlide();
  Retry();
  End({});
  const protocol::TaskLease second_summary = Only();
  Restart();
  const auto report = [&](const LeaseNumber& lease) {
    protocol::TasksFinished late;
    late.items.push_back({lease, first_summary.task, {}, "of the summary", {}, 0, 0});
    rig.Tell(CoreRig::kWorker0, late);
    return Row().state;
  };
  EXPECT_EQ(report(first_summary.lease), JobState::kRunning);
  EXPECT_EQ(report(second_summary.lease), JobState::kDone);
}

TEST_F(Retried, WhatComesAfterFailuresRunsAgainWithItsInputsAndWhatFollowsIt) {
  rig.Finish(CoreRig::kWorker0, root,
             {Spec("bad", 1), Spec("good", 2), After("report", 9, {kSpawnedBase, kSpawnedBase + 1}),
              Spec("publish", 9, {kSpawnedBase + 2}), Spec("apart", 7)});
  End({}, Failure(absl::StatusCode::kDataLoss));
  const auto finish_rest = [&](std::size_t tasks) {
    std::vector<protocol::TaskLease> seen;
    for (auto granted = rig.Granted(); !granted.empty() && seen.size() < tasks;
         granted = rig.Granted()) {
      seen.push_back(granted[0]);
      rig.Finish(CoreRig::kWorker0, granted[0], {}, {}, "of " + granted[0].op);
    }
    return seen;
  };
  ASSERT_EQ(finish_rest(4).size(), 4u);
  EXPECT_EQ(Row().state, JobState::kPartlyFailed);
  EXPECT_EQ(Retry(), 3u);
  const auto again = finish_rest(3);
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].op, "bad");
  EXPECT_EQ(again[1].op, "report");
  EXPECT_EQ(again[1].inputs, (std::vector<std::string>{"of bad", "of good"}));
  EXPECT_EQ(again[2].op, "publish");
  EXPECT_EQ(again[2].inputs, std::vector<std::string>{"of report"});
  EXPECT_EQ(Row().state, JobState::kDone);
}

TEST_F(Retried, WhatASummarySpawnedRunsAgainAloneWhenOnlyItWasCutOff) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("open", 1), After("summary", 0)});
  End();
  End({Spec("clean")});
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  EXPECT_EQ(Retry(), 1u);
  EXPECT_EQ(End().op, "clean");
  EXPECT_EQ(Row().state, JobState::kDone);
}

TEST_F(Retried, WhatASummarySpawnedIsSupersededWhenTheSummaryRunsAgain) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("open", 1), After("summary", 0)});
  End({}, Failure(absl::StatusCode::kDataLoss));
  End({Spec("clean")});
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  EXPECT_EQ(Retry(), 2u);
  EXPECT_EQ(End().op, "open");
  EXPECT_EQ(End({Spec("clean")}).op, "summary") << "and not what cleans up after it";
  EXPECT_EQ(End().op, "clean");
  EXPECT_EQ(Row().state, JobState::kDone);
}

TEST_F(Retried, NothingIsSupersededThatAnotherTaskDependsOn) {
  rig.Finish(CoreRig::kWorker0, root, {Spec("open", 1), Spec("other", 2)});
  End({Spec("shard", 1)});
  const protocol::TaskLease other = Only();
  ASSERT_EQ(other.op, "other");
  const std::uint32_t shard = 3;
  rig.Finish(CoreRig::kWorker0, other, {Spec("reads it", 5, {shard})});
  End({}, Failure(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Retry(), 2u);
  EXPECT_EQ(End().op, "shard");
  EXPECT_EQ(End().op, "reads it");
  EXPECT_EQ(Row().state, JobState::kDone);
}

TEST_F(Retried, WithNothingToDoChangesNothing) {
  rig.Finish(CoreRig::kWorker0, root);
  const std::uint64_t records = rig.core().last_sequence();
  EXPECT_EQ(Retry(), 0u);
  EXPECT_EQ(rig.core().last_sequence(), records);
  EXPECT_EQ(Row().state, JobState::kDone);
}

TEST(RetryRecords, OfTheFirstVersionMeanWhatTheyMeantThen) {
  WireWriter bytes;
  bytes.U64(1);
  bytes.U64(Record{0, RetryRecord{}}.body.index());
  bytes.I64(5);
  bytes.U64(9);
  const StatusOr<Record> record = DecodeRecord(bytes.Take());
  ASSERT_TRUE(record.ok());
  const auto& retry = std::get<RetryRecord>(record->body);
  EXPECT_EQ(retry.job, 9u);
  EXPECT_FALSE(retry.starts_over);
}

TEST(RetryJob, NothingRunsBeforeTheRetryIsDurableWhateverNamedItBefore) {
  CoreRig rig(false);
  rig.Sync();
  rig.AddAgent();
  rig.AddWorker();
  rig.Sync();
  rig.Submit("job");
  rig.Sync();
  ASSERT_EQ(rig.Granted().size(), 1u);
  const protocol::TaskLease lease = rig.Granted()[0];
  rig.Finish(CoreRig::kWorker0, lease, {}, Failure(absl::StatusCode::kUnavailable));
  rig.Tell(CoreRig::kOps, protocol::CancelJob{lease.task.job});  // while it waits to be tried again
  rig.Sync();
  rig.Tell(CoreRig::kOps, protocol::RetryJob{lease.task.job});
  rig.Pass(2000);
  EXPECT_TRUE(rig.Granted().empty());
  rig.Sync();
  EXPECT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
