// Tasks at their limits, and a job's memory of its tasks.
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {
namespace {

protocol::TaskSpec BareSpec(std::uint32_t group = 0, std::vector<std::uint32_t> depends_on = {}) {
  protocol::TaskSpec spec;
  spec.op = "op";
  spec.group = group;
  spec.depends_on = std::move(depends_on);
  return spec;
}

class JobLimits : public testing::Test {
 protected:
  void Submit(JobId job, const std::string& kind = "kind", const std::string& who = "ann") {
    SubmitRecord submit;
    submit.job = job;
    submit.submitter = who;
    submit.submission_key = StrCat(job);
    submit.kind = kind;
    submit.name = "run";
    submit.root = BareSpec();
    ASSERT_TRUE(table.Apply({1, submit}, effects).ok());
  }
  void Commit(std::uint32_t task, std::vector<protocol::TaskSpec> spawned = {},
              const std::string& result = "") {
    ASSERT_TRUE(
        table.Apply({1, CommitRecord{{1, task}, {}, result, 0, std::move(spawned)}}, effects).ok());
  }
  Status Check(const protocol::TaskSpec& spec, std::uint32_t siblings_before = 0) {
    return JobTable::CheckSpec(spec, table.Find(JobId{1}), siblings_before);
  }

  JobTable table;
  Effects effects;
};

TEST_F(JobLimits, EveryLimitOfATaskIsMetExactly) {
  Submit(1);
  struct Case {
    const char* what;
    protocol::TaskSpec at, above;
  };
  std::vector<Case> cases(5, Case{"", BareSpec(), BareSpec()});
  cases[0] = {"op name", BareSpec(), BareSpec()};
  cases[0].at.op.assign(kMaxNameBytes, 'o');
  cases[0].above.op.assign(kMaxNameBytes + 1, 'o');
  cases[1].what = "payload";
  cases[1].at.payload.assign(kMaxPayloadBytes, 'p');
  cases[1].above.payload.assign(kMaxPayloadBytes + 1, 'p');
  cases[2].what = "label";
  cases[2].at.label.assign(kMaxNameBytes, 'l');
  cases[2].above.label.assign(kMaxNameBytes + 1, 'l');
  cases[3].what = "weight";
  cases[3].at.weight = kMaxTaskWeight;
  cases[3].above.weight = kMaxTaskWeight + 1;
  cases[4].what = "dependencies";
  cases[4].at.depends_on.assign(kMaxDependencies, 0);
  cases[4].above.depends_on.assign(kMaxDependencies + 1, 0);
  for (const Case& c : cases) {
    EXPECT_TRUE(Check(c.at).ok()) << c.what;
    const Status refused = Check(c.above);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << c.what;
    EXPECT_NE(MessageOf(refused).find(c.what), std::string_view::npos) << refused;
  }
  protocol::TaskSpec nameless = BareSpec();
  nameless.op = "";
  EXPECT_TRUE(absl::IsInvalidArgument(Check(nameless)));
}

TEST_F(JobLimits, DependenciesAreTasksThatAreThereAndSiblingsFromBefore) {
  Submit(1);
  EXPECT_TRUE(Check(BareSpec(0, {0})).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Check(BareSpec(0, {1})))) << "the job has one task";
  EXPECT_TRUE(absl::IsInvalidArgument(Check(BareSpec(0, {protocol::kSpawnedBase}))));
  EXPECT_TRUE(Check(BareSpec(0, {protocol::kSpawnedBase}), 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Check(BareSpec(0, {protocol::kSpawnedBase + 1}), 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(JobTable::CheckSpec(BareSpec(0, {0}), nullptr, 0)));
  EXPECT_TRUE(Check(BareSpec(), kMaxTasksPerJob - 2).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Check(BareSpec(), kMaxTasksPerJob - 1)));
}

TEST_F(JobLimits, AResultThatIsNoLongerKeptIsNoDependency) {
  Submit(1);
  Commit(0, {BareSpec(), BareSpec(0, {protocol::kSpawnedBase, 0})}, "root");
  Commit(1, {}, "needed once");
  EXPECT_TRUE(Check(BareSpec(0, {1})).ok());
  Commit(2);
  EXPECT_TRUE(absl::IsInvalidArgument(Check(BareSpec(0, {1}))));
  EXPECT_EQ(table.Find(TaskId{1, 0})->result, "root") << "the submitter may fetch it";
  EXPECT_TRUE(Check(BareSpec(0, {0})).ok());
}

TEST_F(JobLimits, SoManyFailuresAreListed) {
  Submit(1);
  std::vector<protocol::TaskSpec> slides;
  for (std::uint32_t i = 0; i <= kMaxFailedListed; ++i) slides.push_back(BareSpec(i + 1));
  Commit(0, std::move(slides));
  for (std::uint32_t i = 0; i <= kMaxFailedListed; ++i) {
    ASSERT_TRUE(table.Apply({1, FailRecord{{1, i + 1}, {3, "why"}, false}}, effects).ok());
  }
  EXPECT_EQ(table.Find(JobId{1})->failures.size(), kMaxFailedListed);
  EXPECT_EQ(table.Find(JobId{1})->tasks_failed, kMaxFailedListed + 1);
}

TEST_F(JobLimits, WhatJoinsAFailedGroupEndsWithIt) {
  Submit(1);
  Commit(0, {BareSpec(5), BareSpec()});
  ASSERT_TRUE(table.Apply({1, FailRecord{{1, 1}, {3, "why"}, false}}, effects).ok());
  effects.Clear();
  Commit(2, {BareSpec(5), BareSpec(6)});
  EXPECT_EQ(table.Find(TaskId{1, 3})->state, TaskState::kCancelled);
  EXPECT_EQ(effects.runnable, (std::vector<TaskId>{{1, 4}}));
}

TEST_F(JobLimits, AnOpenStreamIsItsSubmittersAndTheNewest) {
  Submit(1, "stream", "ann");
  Submit(2, "stream", "bob");
  EXPECT_EQ(table.FindOpenStream("ann", "run")->id, 1u);
  EXPECT_EQ(table.FindOpenStream("bob", "run")->id, 2u);
  EXPECT_EQ(table.FindOpenStream("eve", "run"), nullptr);
  EXPECT_EQ(table.FindOpenStream("ann", "walk"), nullptr);
  Submit(3, "stream", "ann");
  EXPECT_EQ(table.FindOpenStream("ann", "run")->id, 3u);
  ASSERT_TRUE(table.Apply({1, EndStreamRecord{3, JobState::kDone, {}}}, effects).ok());
  EXPECT_EQ(table.FindOpenStream("ann", "run")->id, 1u) << "the newer one has ended";
}

}  // namespace
}  // namespace patchbay::scheduler
