// Jobs at the limits of submission, storage and display.
#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/wire/protocol/codec.h"
#include "scheduler/state/job_logs.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;

class JobBounds : public testing::Test {
 protected:
  ~JobBounds() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  static protocol::SubmitJob Submission() {
    protocol::SubmitJob submit;
    submit.submission_key = "key";
    submit.kind = "noop";
    submit.root.op = "root";
    return submit;
  }
  /// The refusal of the last request; "" when it was none.
  std::string Refusal() const {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }
  absl::StatusCode Code() const {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? absl::StatusCode::kOk
                             : static_cast<absl::StatusCode>(failed->outcome.code);
  }
  void Cancel(JobId job) { rig.Tell(CoreRig::kOps, protocol::CancelJob{job}); }
  void StartWorker() {
    rig.AddAgent();
    rig.AddWorker();
  }
  /// A job whose `slides` tasks failed, each with that reason.
  JobId Fail(const std::string& key, std::size_t slides, const std::string& reason) {
    const JobId job = rig.Submit(key);
    std::vector<protocol::TaskSpec> tasks;
    for (std::uint32_t i = 0; i < slides; ++i) {
      tasks.push_back(Spec("slide", i + 1));
      tasks.back().label.assign(kMaxNameBytes, 'l');
    }
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), std::move(tasks));
    for (auto granted = rig.Granted(); !granted.empty(); granted = rig.Granted()) {
      protocol::TasksFinished finished;
      for (const auto& lease : granted) {
        finished.items.push_back({lease.lease, lease.task, {3, reason}, "", {}, 0, 0});
      }
      rig.Tell(CoreRig::kWorker0, finished);
    }
    return job;
  }
  std::vector<protocol::JobRow> Described(std::vector<JobId> jobs) {
    rig.Tell(CoreRig::kOps, protocol::DescribeJobs{std::move(jobs), 0});
    const auto* described = rig.Find<protocol::JobsDescribed>();
    return described == nullptr ? std::vector<protocol::JobRow>() : described->jobs;
  }

  CoreRig rig;
};

TEST_F(JobBounds, EveryLimitOfASubmissionIsMetExactly) {
  struct Case {
    const char* cause;
    protocol::SubmitJob at, above;
  };
  std::vector<Case> cases(5, Case{"", Submission(), Submission()});
  cases[0].cause = "the submission key is empty or too long";
  cases[0].at.submission_key.assign(kMaxNameBytes, 'k');
  cases[0].above.submission_key.assign(kMaxNameBytes + 1, 'k');
  cases[1].cause = "the kind is empty or too long";
  cases[1].at.kind.assign(kMaxNameBytes, 'k');
  cases[1].above.kind.assign(kMaxNameBytes + 1, 'k');
  cases[2].cause = "the name is too long";
  cases[2].at.name.assign(kMaxNameBytes, 'n');
  cases[2].above.name.assign(kMaxNameBytes + 1, 'n');
  cases[3].cause = "the manifest is too long";
  cases[3].at.manifest.assign(kMaxManifestBytes, 'm');
  cases[3].above.manifest.assign(kMaxManifestBytes + 1, 'm');
  cases[4].cause = "the world size is out of range";
  cases[4].at.world_size = kMaxWorldSize;
  cases[4].above.world_size = kMaxWorldSize + 1;
  for (const Case& c : cases) {
    protocol::SubmitJob at = c.at;
    if (at.submission_key == "key") at.submission_key = c.cause;
    rig.Tell(CoreRig::kOps, std::move(at));
    EXPECT_NE(rig.Find<protocol::JobSubmitted>(), nullptr) << c.cause << ": " << Refusal();
    rig.Tell(CoreRig::kOps, c.above);
    EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument) << c.cause;
    EXPECT_EQ(Refusal(), StrCat("submit job: ", c.cause));
  }
  EXPECT_EQ(rig.core().gauges().jobs, cases.size());
}

TEST_F(JobBounds, APriorityIsInItsRangeAndAboveZeroAnOperators) {
  constexpr PeerId kTom = 91;
  rig.Join(kAnn, Role::kSubmitter, "ann");
  rig.Join(kTom, Role::kTrainer, "tom");
  std::uint64_t taken = 0;
  const auto submit = [&](PeerId peer, std::int32_t priority) {
    protocol::SubmitJob job = Submission();
    job.submission_key = StrCat(peer, " ", priority);
    job.kind = "stream";
    job.priority = priority;
    rig.Tell(peer, job);
    taken += rig.Find<protocol::JobSubmitted>() != nullptr ? 1 : 0;
    return Code();
  };
  for (const PeerId peer : {CoreRig::kOps, kAnn, kTom}) {
    for (const std::int32_t priority : {-100, -1, 0}) {
      EXPECT_EQ(submit(peer, priority), absl::StatusCode::kOk) << Refusal();
    }
    for (const std::int32_t priority : {INT32_MIN, -101, 101, INT32_MAX}) {
      EXPECT_EQ(submit(peer, priority), absl::StatusCode::kInvalidArgument) << priority;
      EXPECT_EQ(Refusal(), StrCat("submit job: the priority ", priority, " is not in -100..100"));
    }
  }
  for (const std::int32_t priority : {1, 100}) {
    EXPECT_EQ(submit(CoreRig::kOps, priority), absl::StatusCode::kOk) << Refusal();
    EXPECT_EQ(submit(kAnn, priority), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(submit(kTom, priority), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(Refusal(), StrCat("submit job: priority ", priority,
                                ": above 0 is for operators: ask for 0 or less"));
  }
  EXPECT_EQ(rig.core().gauges().jobs, taken);
  EXPECT_EQ(taken, 3u * 3 + 2);
}

TEST_F(JobBounds, WhatASubmissionMustSayIsNotEmpty) {
  std::vector<protocol::SubmitJob> empty(4, Submission());
  empty[0].submission_key = "";
  empty[1].kind = "";
  empty[2].root.op = "";
  empty[3].world_size = 0;
  for (const protocol::SubmitJob& submit : empty) {
    rig.Tell(CoreRig::kOps, submit);
    EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument) << Refusal();
  }
  EXPECT_EQ(rig.core().gauges().jobs, 0u);
}

TEST_F(JobBounds, SoManyAreOpenAndNoMoreUntilOneEnds) {
  for (std::size_t i = 1; i <= kMaxOpenJobs; ++i) {
    ASSERT_EQ(rig.Submit(StrCat("key ", i)), i) << Refusal();
  }
  EXPECT_EQ(rig.Submit("one more"), 0u);
  EXPECT_EQ(Code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Refusal(),
            "submit job: 100000 jobs are open: wait until some of them have ended, or cancel them");
  EXPECT_EQ(rig.Submit("key 7"), 7u) << "the same submission is the same job";
  Cancel(7);
  const JobId next = rig.Submit("one more");
  EXPECT_EQ(next, kMaxOpenJobs + 1) << Refusal();
  EXPECT_EQ(rig.Submit("and another"), 0u);
  rig.Tell(CoreRig::kOps, protocol::RetryJob{7}, 8);
  EXPECT_EQ(
      Refusal(),
      "retry job: 7: 100000 jobs are open: wait until some of them have ended, or cancel them");
  EXPECT_EQ(rig.Row(7).state, JobState::kCancelled);
  Cancel(next);
  rig.Tell(CoreRig::kOps, protocol::RetryJob{7}, 9);
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(rig.Row(7).state, JobState::kRunning);
}

TEST_F(JobBounds, OfAForgottenJobNothingIsLeft) {
  for (std::size_t i = 1; i <= kMaxFinishedJobs; ++i) {
    ASSERT_EQ(rig.Submit(StrCat("key ", i)), i);
    Cancel(i);
  }
  EXPECT_EQ(rig.Submit("key 1"), 1u) << "as many as are kept";
  Cancel(rig.Submit("the last"));
  const std::vector<Body> questions = {protocol::DescribeJobs{{1}, 0},
                                       protocol::FetchResult{{1, 0}, 0}, protocol::FetchLogs{1, 0},
                                       protocol::CancelJob{1}, protocol::RetryJob{1}};
  for (const Body& question : questions) {
    rig.Tell(CoreRig::kOps, question);
    EXPECT_EQ(Code(), absl::StatusCode::kNotFound) << protocol::BodyName(question);
  }
  EXPECT_EQ(rig.core().gauges().jobs, kMaxFinishedJobs);
  EXPECT_EQ(rig.Submit("key 1"), kMaxFinishedJobs + 2) << "a new job";
  EXPECT_EQ(rig.Submit("key 2"), 2u);
  const Digest before = rig.core().DurableStateHash();
  Core replayed;
  for (const JournalRecord& record : rig.disk()) {
    ASSERT_EQ(replayed.Replay(record.sequence, record.bytes), absl::OkStatus());
  }
  EXPECT_EQ(replayed.DurableStateHash(), before);
  EXPECT_EQ(replayed.CheckInvariants(), absl::OkStatus());
}

TEST_F(JobBounds, SoManyAreDescribedInOneReply) {
  std::vector<JobId> all;
  for (std::size_t i = 0; i <= kMaxJobsDescribed; ++i) all.push_back(rig.Submit(StrCat("key ", i)));
  EXPECT_EQ(Described(all).size(), kMaxJobsDescribed) << "those that were asked for first";
  EXPECT_EQ(Described(all).front().job, all.front());
  EXPECT_EQ(Described({}).size(), kMaxJobsDescribed);
  EXPECT_EQ(Described({}).front().job, all.back()) << "the newest";
}

TEST_F(JobBounds, SoManyFailuresAreNamedOfOneJobAndOfSeveral) {
  StartWorker();
  const JobId many = Fail("many", kMaxFailedListed + 1, "why");
  const JobId few = Fail("few", 2, "why");
  const auto alone = Described({many});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].failed.size(), kMaxFailedListed);
  EXPECT_EQ(alone[0].tasks_failed, kMaxFailedListed + 1);
  const auto several = Described({many, few}), all = Described({});
  ASSERT_TRUE(several.size() == 2 && all.size() == 2);
  for (const protocol::JobRow& row : {several[0], all[1]}) {
    EXPECT_EQ(row.job, many);
    EXPECT_EQ(row.failed.size(), kMaxFailedDescribed);
    EXPECT_EQ(row.tasks_failed, kMaxFailedListed + 1);
  }
  EXPECT_EQ(several[1].failed.size(), 2u);
}

TEST_F(JobBounds, WhateverFailedAReplyAboutItFitsAMessage) {
  StartWorker();
  for (int i = 0; i < 100; ++i) {
    Fail(StrCat("key ", i), kMaxFailedDescribed, std::string(kMaxOutcomeBytes, 'x'));
  }
  const auto fits = [this](Body body) {
    rig.Tell(CoreRig::kOps, std::move(body));
    return rig.sent().size() == 1 &&
           protocol::Encode({protocol::kProtocolVersion, 1, 7, rig.sent()[0].body}).ok();
  };
  EXPECT_TRUE(fits(protocol::DescribeJobs{{}, 0}));
  EXPECT_TRUE(fits(protocol::DescribeCluster{}));
  const auto rows = Described({});
  ASSERT_EQ(rows.size(), 100u) << "every job is there";
  EXPECT_EQ(rows.front().failed.size(), kMaxFailedDescribed) << "the newest with its failures";
  EXPECT_EQ(rows.back().failed.size(), 0u);
  EXPECT_EQ(rows.back().tasks_failed, kMaxFailedDescribed) << "they are counted";
  Fail("one", kMaxFailedListed, std::string(kMaxOutcomeBytes, 'x'));
  EXPECT_EQ(Described({101}).at(0).failed.size(), kMaxFailedListed) << "of one job all";
  EXPECT_TRUE(fits(protocol::DescribeJobs{{101}, 0}));
}

TEST_F(JobBounds, AReasonIsCut) {
  StartWorker();
  for (const std::size_t bytes : {kMaxOutcomeBytes - 1, kMaxOutcomeBytes, kMaxOutcomeBytes + 1}) {
    const JobId job = Fail(StrCat(bytes), 1, std::string(bytes, 'x'));
    ASSERT_EQ(rig.Row(job).failed.size(), 1u);
    EXPECT_EQ(TextOf(rig.Row(job).failed[0].outcome).size(), std::min(bytes, kMaxOutcomeBytes));
  }
}

TEST(JobLog, KeepsItsLastLinesEachUpToItsLimit) {
  const std::int64_t wall = 0;
  JobLogs logs(wall);
  logs.Add(1, std::string(kMaxLogLineBytes, 'x'));
  logs.Add(1, std::string(kMaxLogLineBytes + 1, 'x'));
  for (const JobLogs::Line& line : logs.After(1, 0)) {
    EXPECT_EQ(line.text.size(), kMaxLogLineBytes) << line.sequence;
  }
  for (std::size_t i = 2; i < kMaxLogLines; ++i) logs.Add(1, "more");
  EXPECT_EQ(logs.After(1, 0).front().sequence, 1u);
  logs.Add(1, "the last");
  const auto lines = logs.After(1, 0);
  EXPECT_EQ(lines.size(), kMaxLogLines);
  EXPECT_EQ(lines.front().sequence, 2u);
  EXPECT_EQ(lines.back().text, "the last");
  EXPECT_EQ(logs.Check([](JobId) { return true; }), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
