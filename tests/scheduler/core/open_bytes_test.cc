// The limit on the memory of open jobs, and that nothing is kept beyond it.
#include <gtest/gtest.h>

#include "scheduler/state/job_logs.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class OpenBytes : public testing::Test {
 protected:
  OpenBytes() : rig(true, Options()) {
    rig.AddAgent();
    rig.AddWorker();
  }
  ~OpenBytes() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  static CoreOptions Options() {
    CoreOptions options;
    options.open_bytes_max = 16 * kMiB;
    return options;
  }
  /// A job of about a MiB; 0 when it was refused.
  JobId Submit(int key) {
    protocol::SubmitJob submit;
    submit.submission_key = StrCat("key ", key);
    submit.kind = "noop";
    submit.root.op = "root";
    submit.manifest.assign(kMiB, 'm');
    rig.Tell(CoreRig::kOps, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  std::string Refusal() const {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }
  /// Until one is refused; how many were taken.
  int Fill() {
    while (Submit(submitted_) != 0) ++submitted_;
    return submitted_;
  }
  void Cancel(JobId job) { rig.Tell(CoreRig::kOps, protocol::CancelJob{job}); }

  CoreRig rig;
  int submitted_ = 0;
};

TEST_F(OpenBytes, SubmissionsTakeHalfAndMoreIsRefusedUntilOneEnds) {
  EXPECT_EQ(Fill(), 7) << "8 MiB, and each job is a little more than one";
  EXPECT_EQ(Refusal(),
            "submit job: the scheduler keeps 7.0 MiB of open jobs, and with 1.0 MiB more would "
            "exceed 8.0 MiB: wait until some of them have ended, or cancel them");
  EXPECT_NE(Submit(0), 0u) << "the same submission is the same job";
  Cancel(1);
  EXPECT_NE(Submit(100), 0u);
  EXPECT_EQ(Submit(101), 0u);
}

TEST_F(OpenBytes, AfterARestartTheSameIsHeld) {
  Fill();
  rig.Restart();
  ASSERT_TRUE(rig.replayed().ok());
  EXPECT_EQ(Submit(100), 0u);
  Cancel(1);
  EXPECT_NE(Submit(100), 0u);
}

TEST_F(OpenBytes, AJobThatEndedIsNotOpenedAgainWhereItDoesNotFit) {
  const JobId first = Submit(1000);
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {3, "bad input"});
  ASSERT_EQ(rig.Row(first).state, protocol::JobState::kFailed);
  Fill();
  rig.Tell(CoreRig::kOps, protocol::RetryJob{first});
  EXPECT_NE(Refusal().find("retry job: 1: the scheduler keeps 7.0 MiB"), std::string::npos);
  Cancel(2);
  rig.Tell(CoreRig::kOps, protocol::RetryJob{first}, 8);
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(rig.Row(first).state, protocol::JobState::kRunning);
  EXPECT_EQ(Submit(100), 0u) << "it counts again";
}

TEST_F(OpenBytes, WhatRunsMayTakeTheRestAndIsToldWhatEndsIt) {
  Submit(1000);
  const auto root = rig.Granted().at(0);
  Fill();
  std::vector<protocol::TaskSpec> spawned(2, Spec());
  for (auto& spec : spawned) spec.payload.assign(kMiB, 'p');
  rig.Finish(CoreRig::kWorker0, root, spawned);
  const auto granted = rig.Granted();
  ASSERT_FALSE(granted.empty());
  EXPECT_EQ(rig.Row(1).tasks_total, 3u) << "7 MiB and 2 fit into 16";
  std::vector<protocol::TaskSpec> many(8, Spec());
  for (auto& spec : many) spec.payload.assign(kMiB, 'p');
  rig.Finish(CoreRig::kWorker0, granted[0], many);
  const auto row = rig.Row(granted[0].task.job);
  ASSERT_FALSE(row.failed.empty());
  EXPECT_NE(TextOf(row.failed[0].outcome)
                .find(StrCat("commit task: ", granted[0].task.ToString(), ": the scheduler keeps")),
            std::string::npos)
      << TextOf(row.failed[0].outcome);
}

TEST_F(OpenBytes, PartsOfResultsCountUntilTheirLeaseEnds) {
  const JobId job = Submit(1000);
  const auto lease = rig.Granted().at(0);
  std::uint64_t at = 0;
  do {
    rig.Tell(CoreRig::kWorker0,
             protocol::PutResultPart{lease.lease, lease.task, at, std::string(kMiB, 'r')});
    at += kMiB;
  } while (rig.Find<protocol::ResultPartKept>() != nullptr && at < 64 * kMiB);
  EXPECT_EQ(at / kMiB, 15u) << "16 MiB, less the job's one";
  EXPECT_NE(Refusal().find("put result part: the scheduler keeps"), std::string::npos);
  EXPECT_EQ(Submit(1), 0u);
  Cancel(job);
  EXPECT_NE(Submit(1), 0u);
}

TEST(JobLogsOfMany, HoldSoMuchInAllAndTheOldestGoFirst) {
  const std::int64_t wall = 0;
  JobLogs logs(wall);
  const std::string text(kMaxLogLineBytes, 'x');
  const std::size_t jobs = 2 * kMaxLogBytes / (kMaxLogLines * kMaxLogLineBytes);
  for (JobId job = 1; job <= jobs; ++job) {
    for (std::size_t i = 0; i < kMaxLogLines; ++i) logs.Add(job, text);
  }
  EXPECT_EQ(logs.Check([](JobId) { return true; }), absl::OkStatus());
  EXPECT_TRUE(logs.After(1, 0).empty());
  EXPECT_EQ(logs.After(jobs, 0).size(), kMaxLogLines);
  logs.Add(1, "later");
  EXPECT_EQ(logs.After(1, 0).back().sequence, kMaxLogLines + 1) << "numbers go on";
  for (JobId job = 1; job <= jobs; ++job) logs.Forget(job);
  EXPECT_EQ(logs.Check([](JobId) { return false; }), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
