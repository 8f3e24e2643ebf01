// Ended jobs that are kept, older ones that are dropped for them, and the memory that is freed.
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {
namespace {

protocol::TaskSpec PayloadSpec(std::uint32_t group = 0,
                               std::vector<std::uint32_t> depends_on = {}) {
  protocol::TaskSpec spec;
  spec.op = "op";
  spec.payload = "payload";
  spec.group = group;
  spec.depends_on = std::move(depends_on);
  return spec;
}

class FinishedJobs : public testing::Test {
 protected:
  ~FinishedJobs() override { EXPECT_EQ(table.CheckBytes(), absl::OkStatus()); }

  /// Under the submission key of that number.
  Status Submit(JobId job, JobId key, std::size_t manifest_bytes = 0) {
    SubmitRecord submit;
    submit.job = job;
    submit.submitter = "ann";
    submit.submission_key = StrCat(key);
    submit.kind = "kind";
    submit.root = PayloadSpec();
    submit.manifest.assign(manifest_bytes, 'm');
    return table.Apply({1, std::move(submit)}, effects);
  }
  /// The jobs that were forgotten for it.
  std::vector<JobId> Cancel(JobId job) {
    effects.Clear();
    EXPECT_EQ(table.Apply({1, CancelRecord{job}}, effects), absl::OkStatus());
    return effects.forgotten;
  }
  std::vector<JobId> SubmitAndCancel(JobId job, std::size_t manifest_bytes = 0) {
    EXPECT_EQ(Submit(job, job, manifest_bytes), absl::OkStatus());
    return Cancel(job);
  }
  /// Ends as many as are kept, the newest first. Two more are open: job 1 and the next after them.
  void Fill() {
    for (JobId job = 1; job <= kMaxFinishedJobs + 2; ++job) {
      ASSERT_EQ(Submit(job, job), absl::OkStatus());
    }
    for (JobId job = kMaxFinishedJobs + 1; job > 1; --job) {
      ASSERT_EQ(Cancel(job), std::vector<JobId>{}) << job;
    }
  }

  static constexpr JobId kOldest = kMaxFinishedJobs + 1;  ///< the first that Fill ended
  JobTable table;
  Effects effects;
};

TEST_F(FinishedJobs, AreSoManyAndTheOneThatEndedFirstGoes) {
  Fill();
  EXPECT_EQ(table.open_jobs(), 2u);
  EXPECT_EQ(Cancel(1), std::vector<JobId>{kOldest}) << "not the one that was submitted first";
  EXPECT_EQ(table.jobs().size(), kMaxFinishedJobs + 1);
  EXPECT_EQ(table.Find(kOldest), nullptr);
  EXPECT_EQ(table.Find(TaskId{kOldest, 0}), nullptr);
  EXPECT_NE(table.Find(JobId{1}), nullptr);
  EXPECT_EQ(table.open_jobs(), 1u);
  EXPECT_EQ(Cancel(kOldest + 1), std::vector<JobId>{kOldest - 1});
  EXPECT_EQ(table.open_bytes(), 0u);
}

TEST_F(FinishedJobs, TheSubmissionKeyOfAForgottenOneIsANewJobs) {
  Fill();
  const JobId again = kOldest + 2;
  EXPECT_FALSE(Submit(again, kOldest).ok()) << "it is known still";
  Cancel(1);
  EXPECT_EQ(table.FindSubmission("ann", StrCat(kOldest)), 0u);
  EXPECT_EQ(table.FindSubmission("ann", "1"), 1u);
  EXPECT_FALSE(Submit(kOldest, kOldest).ok()) << "but never under its number";
  ASSERT_EQ(Submit(again, kOldest), absl::OkStatus());
  EXPECT_EQ(table.FindSubmission("ann", StrCat(kOldest)), again);
}

TEST_F(FinishedJobs, HoldSoManyBytesAndGiveThemBack) {
  SubmitAndCancel(1);
  const std::uint64_t bare = table.Find(JobId{1})->size_bytes;
  const std::size_t half = kMaxFinishedBytes / 2 - bare;
  SubmitAndCancel(2, half - bare);
  EXPECT_EQ(SubmitAndCancel(3, half), std::vector<JobId>{}) << "they are full to the byte";
  EXPECT_EQ(SubmitAndCancel(4, 1), (std::vector<JobId>{1, 2})) << "the first frees a byte too few";
  EXPECT_EQ(SubmitAndCancel(5, half - bare - 1), std::vector<JobId>{}) << "there is room again";
  EXPECT_EQ(SubmitAndCancel(6), std::vector<JobId>{3});
  EXPECT_EQ(table.jobs().size(), 3u);
}

TEST_F(FinishedJobs, TheLastIsKeptHoweverLargeUntilTheNext) {
  EXPECT_EQ(SubmitAndCancel(1, kMaxFinishedBytes), std::vector<JobId>{});
  ASSERT_NE(table.Find(JobId{1}), nullptr) << "its submitter is still to hear how it ended";
  EXPECT_EQ(Submit(2, 2), absl::OkStatus());
  ASSERT_NE(table.Find(JobId{1}), nullptr);
  EXPECT_EQ(Cancel(2), std::vector<JobId>{1});
}

TEST_F(FinishedJobs, ARetriedOneIsOpenAndTheNewestWhenItEndsAgain) {
  Fill();
  ASSERT_EQ(table.Apply({1, RetryRecord{kOldest, 7, 8, {}, true}}, effects), absl::OkStatus());
  EXPECT_EQ(table.open_jobs(), 3u);
  EXPECT_EQ(Cancel(1), std::vector<JobId>{}) << "it made room";
  EXPECT_EQ(Cancel(kOldest), std::vector<JobId>{kOldest - 1});
  EXPECT_EQ(Cancel(kOldest + 1), std::vector<JobId>{kOldest - 2});
  EXPECT_NE(table.Find(kOldest), nullptr);
}

TEST_F(FinishedJobs, FromASnapshotGoInTheSameOrder) {
  Fill();
  JobTable back;
  ASSERT_EQ(back.Decode(table.Encode()), absl::OkStatus());
  EXPECT_EQ(back.CheckBytes(), absl::OkStatus());
  EXPECT_EQ(back.open_jobs(), table.open_jobs());
  EXPECT_EQ(back.open_bytes(), table.open_bytes());
  for (const JobId job : {JobId{1}, kOldest + 1}) {
    Effects others;
    ASSERT_EQ(back.Apply({1, CancelRecord{job}}, others), absl::OkStatus());
    EXPECT_EQ(others.forgotten, Cancel(job)) << job;
    EXPECT_EQ(others.forgotten.size(), 1u) << job;
    EXPECT_EQ(back.CheckBytes(), absl::OkStatus());
    EXPECT_TRUE(back.Encode() == table.Encode()) << job;
  }
}

TEST_F(FinishedJobs, WeighTheSameFromASnapshotWhateverTheyCameThrough) {
  const auto commit = [this](TaskId task, const std::string& result,
                             std::vector<protocol::TaskSpec> spawned = {}) {
    return table.Apply({1, CommitRecord{task, {}, result, 0, std::move(spawned)}}, effects);
  };
  const auto fail = [this](TaskId task) {
    return table.Apply({1, FailRecord{task, {3, "a reason of some length"}, false}}, effects);
  };
  const auto weighs_the_same = [this] {
    JobTable back;
    if (!back.Decode(table.Encode()).ok() || !back.CheckBytes().ok()) return false;
    return back.Find(JobId{1})->size_bytes == table.Find(JobId{1})->size_bytes &&
           back.open_bytes() == table.open_bytes();
  };
  ASSERT_EQ(Submit(1, 1, 1'000), absl::OkStatus());
  ASSERT_EQ(commit({1, 0}, "result of the root",
                   {PayloadSpec(1), PayloadSpec(1, {protocol::kSpawnedBase, 0}), PayloadSpec(2),
                    PayloadSpec(2)}),
            absl::OkStatus());
  EXPECT_TRUE(weighs_the_same()) << "with inputs";
  ASSERT_EQ(commit({1, 1}, "needed once"), absl::OkStatus());
  ASSERT_EQ(commit({1, 2}, "needed by nobody"), absl::OkStatus());
  EXPECT_TRUE(weighs_the_same()) << "with a result that is no longer kept";
  ASSERT_EQ(fail({1, 3}), absl::OkStatus());
  ASSERT_EQ(table.Find(JobId{1})->state, JobState::kPartlyFailed);
  EXPECT_TRUE(weighs_the_same()) << "with a failure";
  ASSERT_EQ(table.Apply({1, RetryRecord{1, 7, 8, {}, true}}, effects), absl::OkStatus());
  EXPECT_TRUE(weighs_the_same()) << "retried";
  Cancel(1);
  EXPECT_TRUE(weighs_the_same()) << "cancelled";
}

}  // namespace
}  // namespace patchbay::scheduler
