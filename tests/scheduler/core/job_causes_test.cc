// Why a job waits: one cause with what would change it. Each is carried out: without it the job
// does not start, with it the job starts in that turn.
#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::ChangeJob;
using protocol::ChangeNode;
using protocol::JobChange;
using protocol::NodeChange;
using protocol::TaskLease;

class Causes : public testing::Test {
 protected:
  ~Causes() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  protocol::JobExplained Why(JobId job, PeerId peer = CoreRig::kOps) {
    rig.Tell(peer, protocol::ExplainJob{job});
    const auto* explained = rig.Find<protocol::JobExplained>();
    return explained == nullptr ? protocol::JobExplained{"no answer", {}} : *explained;
  }
  static std::string Fact(const protocol::JobExplained& why, const std::string& name) {
    for (const auto& fact : why.facts) {
      if (fact.name == name) return fact.text;
    }
    return "";
  }
  JobId SubmitNeeding(const std::string& key, protocol::Resources need, PeerId peer = CoreRig::kOps,
                      const std::string& kind = "noop") {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = kind;
    submit.root = Spec("root");
    submit.root.resources = need;
    rig.Tell(peer, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  /// Whether a task of the job was leased by the last call.
  bool Starts(JobId job) const {
    for (const TaskLease& lease : rig.Granted()) {
      if (lease.task.job == job) return true;
    }
    return false;
  }
  void Apply(const model::TeamPolicy& policy) {
    rig.Tell(CoreRig::kOps, protocol::ApplyTeams{DumpJson(JsonOf(policy)), "", ""});
    EXPECT_NE(rig.Find<protocol::TeamsApplied>(), nullptr);
  }
  /// The answer stands for a second in which nothing happens.
  void Stands(JobId job, const std::string& cause) {
    EXPECT_EQ(Why(job).cause, cause);
    EXPECT_EQ(rig.Row(job).cause, cause) << "rows have the same code";
    rig.Pass(1000, {CoreRig::kAgent, CoreRig::kWorker0});
    EXPECT_FALSE(Starts(job));
    EXPECT_EQ(Why(job).cause, cause);
  }

  CoreRig rig;
};

TEST_F(Causes, NoNodeUntilOneJoins) {
  const JobId job = rig.Submit("job");
  EXPECT_EQ(Why(job).cause, "no_node");
  rig.Pass(1000);
  EXPECT_EQ(Why(job).cause, "no_node");
  EXPECT_NE(Fact(Why(job), "starts").find("patchbay join"), std::string::npos);
  rig.AddAgent();
  rig.AddWorker();
  EXPECT_TRUE(Starts(job));
  EXPECT_EQ(Why(job).cause, "") << "it runs";
}

TEST_F(Causes, HeldUntilItIsReleased) {
  const JobId job = rig.Submit("job");
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kHold});
  rig.AddAgent();
  rig.AddWorker();
  Stands(job, "held");
  rig.Tell(CoreRig::kOps, ChangeJob{job, JobChange::kRelease});
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, DrainedUntilTheNodeIsResumed) {
  rig.AddAgent();
  rig.AddWorker();
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kDrain, ""});
  const JobId job = rig.Submit("job");
  Stands(job, "drained");
  EXPECT_EQ(Fact(Why(job), "starts"), "when it is resumed: patchbay node resume node");
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kResume, ""});
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, SuspectUntilTheNodeAnswers) {
  rig.AddAgent();
  rig.AddWorker();
  rig.Pass(4000, {});
  const JobId job = rig.Submit("job");
  EXPECT_EQ(Why(job).cause, "suspect");
  EXPECT_NE(Fact(Why(job), "held by").find("node does not answer"), std::string::npos);
  rig.Tell(CoreRig::kAgent, protocol::Heartbeat{}, 0);
  rig.Pass(100, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, MemoryOfALargerWorkerThanThereIs) {
  const JobId job = SubmitNeeding("job", {1000, 0, 2u << 20});  // later it would be refused
  rig.AddAgent();
  rig.AddWorker();
  Stands(job, "memory");
  EXPECT_EQ(Fact(Why(job), "held by"), "it needs 2 MiB, a worker has 1 MiB");
}

TEST_F(Causes, MemoryThatOtherWorkHasUntilItEnds) {
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  SubmitNeeding("large", {1000, 0, 900u << 10});
  const TaskLease large = rig.Granted().at(0);
  const bool by_first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
  const JobId job = SubmitNeeding("job", {1000, 0, 900u << 10});
  EXPECT_EQ(Why(job).cause, "memory");
  rig.Finish(CoreRig::kWorker0 + (by_first ? 0 : 1), large);
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, GpusUntilANodeThatHasSomeJoins) {
  const JobId job = SubmitNeeding("job", {1000, 1, 0});
  rig.AddAgent();
  rig.AddWorker();
  Stands(job, "gpus");
  rig.AddAgent(4, 1, 1);
  rig.AddGpuWorker(1);
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, PriorityUntilItIsRaisedAndAWorkerIsFree) {
  rig.AddAgent(1);
  rig.AddWorker();
  rig.Submit("first");
  const TaskLease first = rig.Granted().at(0);
  const JobId second = rig.Submit("second");
  const JobId third = rig.Submit("third");
  Stands(third, "priority");
  EXPECT_NE(Fact(Why(third), "held by").find(StrCat("your jobs ", first.task.job, " (1.0)")),
            std::string::npos);
  rig.Tell(CoreRig::kOps, ChangeJob{third, JobChange::kPriority, 1});
  rig.Finish(CoreRig::kWorker0, first);
  EXPECT_TRUE(Starts(third));
  EXPECT_FALSE(Starts(second)) << "without a higher priority it does not go first";
}

TEST_F(Causes, BackoffUntilTheNextAttempt) {
  rig.AddAgent();
  rig.AddWorker();
  const JobId job = rig.Submit("job");
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, Failure(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(Starts(job));
  EXPECT_EQ(Why(job).cause, "backoff");
  EXPECT_EQ(Fact(Why(job), "starts"), "in 1 s");
  rig.Pass(1000, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, PlanningUntilAWorkerHasPlanned) {
  rig.AddAgent(1);
  rig.AddWorker();
  rig.Submit("one", "stream");
  const TaskLease plan = rig.Granted().at(0);
  const JobId two = rig.Submit("two", "stream");
  Stands(two, "planning");
  rig.Finish(CoreRig::kWorker0, plan, {}, {}, kPlan);
  EXPECT_TRUE(Starts(two));
}

TEST_F(Causes, RecoveryUntilTheFormerHolderIsBack) {
  rig.AddAgent();
  rig.AddWorker();
  const JobId job = rig.Submit("job");
  rig.Restart();
  EXPECT_EQ(Why(job).cause, "recovery");
  rig.AddAgent();
  rig.AddWorker();
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_TRUE(Starts(job)) << "it is back, without the task";
}

TEST_F(Causes, SuspectTaskUntilAWorkerIsEmpty) {
  rig.AddAgent(1);
  rig.AddWorker();
  const JobId first = rig.Submit("first");
  rig.Exited(0, 100);
  rig.Submit("second");
  rig.AddWorker(0, 200);
  ASSERT_EQ(rig.Granted().size(), 1u);
  const TaskLease runs = rig.Granted()[0];
  const JobId waits = runs.task.job == first ? 0 : first;
  if (waits != 0) {
    EXPECT_EQ(Why(waits).cause, "suspect");
    rig.Finish(CoreRig::kWorker0, runs);
    EXPECT_TRUE(Starts(waits));
  } else {
    EXPECT_EQ(Why(first).cause, "");
  }
}

TEST_F(Causes, CapsUntilTheyAreRaised) {
  rig.Join(kAnn, Role::kSubmitter, "ann", "path");
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  model::TeamPolicy policy;
  auto& rules = policy.teams["path"];
  rules.most.cpu_millis = rules.users["ann"].most.cpu_millis = 1'000;
  Apply(policy);
  SubmitNeeding("a", {1000, 0, 0}, kAnn);
  const JobId job = SubmitNeeding("b", {1000, 0, 0}, kAnn);
  EXPECT_EQ(Why(job).cause, "cap_team");
  EXPECT_EQ(Fact(Why(job), "held by"), "team path has 1.0 of at most 1.0 cores");
  rules.most.cpu_millis.reset();
  Apply(policy);
  EXPECT_FALSE(Starts(job));
  EXPECT_EQ(Why(job).cause, "cap_user");
  EXPECT_NE(Fact(Why(job), "starts").find("teams.path.users.ann.most.cores"), std::string::npos);
  rules.users["ann"].most.cpu_millis = 2'000;
  Apply(policy);
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, CapsOfGpusAndMemoryUntilTheyAreRaised) {
  rig.Join(kAnn, Role::kSubmitter, "ann", "path");
  rig.AddAgent(2, 1, 2);
  rig.AddGpuWorker(0);
  rig.AddGpuWorker(1);
  model::TeamPolicy policy;
  auto& rules = policy.teams["path"];
  rules.most.gpus = 1;
  rules.users["ann"].most.memory_bytes = 1 << 20;
  Apply(policy);
  SubmitNeeding("a", {1000, 1, 600 << 10}, kAnn);
  const JobId gpu = SubmitNeeding("b", {1000, 1, 0}, kAnn);
  EXPECT_EQ(Why(gpu).cause, "cap_team");
  EXPECT_EQ(Fact(Why(gpu), "held by"), "team path has 1 of at most 1 GPUs");
  EXPECT_NE(Fact(Why(gpu), "starts").find("teams.path.most.gpus"), std::string::npos);
  const JobId large = SubmitNeeding("c", {1000, 0, 600 << 10}, kAnn);
  EXPECT_FALSE(Starts(large));
  rules.users["ann"].most.memory_bytes = 500 << 10;
  Apply(policy);
  EXPECT_FALSE(Starts(gpu));
  rules.most.gpus = 2;
  Apply(policy);
  EXPECT_TRUE(Starts(gpu));
}

TEST_F(Causes, ShareUntilATeamLendsWhatItKeeps) {
  rig.Join(kAnn, Role::kSubmitter, "ann", "path");
  rig.Join(kBob, Role::kSubmitter, "bob", "rad");
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  model::TeamPolicy policy;
  policy.teams["rad"];
  auto& keeper = policy.teams["path"];
  keeper.guaranteed.cpu_millis = 1'000;
  keeper.lend_percent = 0;
  Apply(policy);
  EXPECT_TRUE(Starts(SubmitNeeding("a", {1000, 0, 0}, kBob)));
  const JobId job = SubmitNeeding("b", {1000, 0, 0}, kBob);
  Stands(job, "share");
  EXPECT_EQ(Fact(Why(job), "held by"), "another team does not lend 1.0 cores");
  EXPECT_NE(Fact(Why(job), "starts").find("that team lends more"), std::string::npos);
  for (const char* fact : {"held by", "starts"}) {
    EXPECT_EQ(Fact(Why(job), fact).find("path"), std::string::npos) << "another team's name";
  }
  const JobId owners = SubmitNeeding("c", {1000, 0, 0}, kAnn);
  EXPECT_TRUE(Starts(owners)) << "the core is there at once";
  rig.Tell(kAnn, protocol::CancelJob{owners});
  EXPECT_FALSE(Starts(job));
  keeper.lend_percent = 100;
  Apply(policy);
  EXPECT_TRUE(Starts(job));
}

TEST_F(Causes, SayThatGuaranteesAreScaledDown) {
  rig.AddAgent(1);
  rig.AddWorker();
  rig.Pass(100);
  rig.Submit("first");
  const JobId job = rig.Submit("second");
  EXPECT_EQ(Fact(Why(job), "guarantees"), "");
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.cpu_millis = 8'000;
  Apply(policy);
  EXPECT_NE(Fact(Why(job), "guarantees").find("scaled down"), std::string::npos);
}

TEST_F(Causes, ShareUntilItsTeamHasLessThanItsOwn) {
  rig.Join(kAnn, Role::kSubmitter, "ann", "path");
  rig.Join(kBob, Role::kSubmitter, "bob", "rad");
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  model::TeamPolicy policy;
  policy.teams["path"];
  policy.teams["rad"];
  policy.lend_max_ms = 0;
  Apply(policy);
  const JobId bobs = SubmitNeeding("b", {1000, 0, 0}, kBob);
  rig.Tell(kBob, protocol::CancelJob{bobs});
  SubmitNeeding("a", {1000, 0, 0}, kAnn);
  const TaskLease own = rig.Granted().at(0);
  const bool by_first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
  const JobId job = SubmitNeeding("beyond", {1000, 0, 0}, kAnn);
  EXPECT_FALSE(Starts(job));
  EXPECT_EQ(Why(job).cause, "share");
  EXPECT_NE(Fact(Why(job), "held by").find("lend_max"), std::string::npos);
  rig.Finish(CoreRig::kWorker0 + (by_first ? 0 : 1), own);
  EXPECT_TRUE(Starts(job));
}

/// A long task goes back from a lent core, and only for work that the core's owner has.
TEST_F(Causes, GuaranteeReclaimedUntilItsTeamHasLessThanItsShare) {
  rig.Join(kAnn, Role::kSubmitter, "ann", "path");
  rig.Join(kBob, Role::kSubmitter, "bob", "rad");
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1};
  model::TeamPolicy policy;
  policy.teams["path"];
  policy.teams["rad"];
  policy.reclaim_after_ms = 3'000;
  Apply(policy);
  SubmitNeeding("first", {1000, 0, 0}, kAnn);
  ASSERT_EQ(rig.Granted().size(), 1u);
  rig.Pass(200, alive);
  const JobId lent = SubmitNeeding("second", {1000, 0, 0}, kAnn);
  ASSERT_TRUE(Starts(lent));
  rig.Pass(3'500, alive);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr) << "nobody wants the core";
  const JobId owners = SubmitNeeding("owner", {1000, 0, 0}, kBob);
  rig.Pass(200, alive);
  ASSERT_NE(rig.Find<protocol::LeasesRevoked>(), nullptr);
  EXPECT_TRUE(Starts(owners));
  EXPECT_FALSE(Starts(lent));
  rig.Pass(4'000, alive);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr) << "each has its share";
  EXPECT_EQ(Why(lent).cause, "guarantee_reclaimed");
  rig.Tell(kBob, protocol::CancelJob{owners});
  EXPECT_FALSE(Starts(lent)) << "its owner had work a moment ago";
}

TEST_F(Causes, AreToldToNobodyElse) {
  rig.Join(kAnn, Role::kSubmitter, "ann");
  rig.Join(kBob, Role::kSubmitter, "bob");
  rig.AddAgent(1);
  rig.AddWorker();
  const JobId anns = SubmitNeeding("secret-study", {1000, 0, 0}, kAnn);
  const JobId bobs = SubmitNeeding("b", {1000, 0, 0}, kBob);
  rig.Tell(kBob, protocol::ExplainJob{anns});
  const std::string other = TextOf(rig.Find<protocol::RequestFailed>()->outcome);
  rig.Tell(kBob, protocol::ExplainJob{99});
  const std::string none = TextOf(rig.Find<protocol::RequestFailed>()->outcome);
  EXPECT_EQ(other, StrCat("find job: ", anns, ": no such job"));
  EXPECT_EQ(none, "find job: 99: no such job");
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0});
  const auto why = Why(bobs, kBob);
  EXPECT_EQ(why.cause, "share");
  for (const auto& fact : why.facts) {
    EXPECT_EQ(fact.text.find("ann"), std::string::npos);
    EXPECT_EQ(fact.text.find("secret"), std::string::npos);
  }
  EXPECT_EQ(Fact(why, "held by"), "1.0 cores of other users");
}

TEST_F(Causes, OfAnEndedJobThereAreNone) {
  const JobId job = rig.Submit("job");
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  EXPECT_EQ(Why(job).cause, "");
  EXPECT_TRUE(Why(job).facts.empty());
}

class StreamCauses : public Streaming {
 protected:
  std::string Why() {
    rig.Tell(CoreRig::kOps, protocol::ExplainJob{job});
    return rig.Find<protocol::JobExplained>()->cause;
  }
  ~StreamCauses() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }
};

TEST_F(StreamCauses, TrainerAbsentUntilOneAttaches) {
  EXPECT_EQ(Why(), "trainer_absent");
  Attach();
  EXPECT_EQ(rig.Shards().size(), 2u);
  EXPECT_EQ(Why(), "") << "its shards are made";
}

/// A stream that no worker may serve is offered only those that became freer, until the next tick:
/// until then it waits for nothing that anybody could change.
TEST_F(StreamCauses, NothingWhereItStartsAtTheNextTick) {
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1,
                                     CoreRig::kTrainer0};
  rig.AddAgent(2, 1, 1);
  rig.AddGpuWorker(1);
  rig.Pass(100, alive);
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.cpu_millis = 1'000;
  policy.teams["path"].lend_percent = 0;
  rig.Tell(CoreRig::kOps, protocol::ApplyTeams{DumpJson(JsonOf(policy)), "", ""});
  protocol::SubmitJob submit;
  submit.submission_key = submit.kind = "noop";
  submit.root = Spec("root");
  submit.root.resources = {1000, 1, 0};
  rig.Tell(CoreRig::kOps, submit);
  const TaskLease task = rig.Granted().at(0);
  Attach();
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_EQ(Why(), "share") << "the other core is kept";
  rig.Finish(CoreRig::kWorker0 + 1, task);
  EXPECT_TRUE(rig.Shards().empty()) << "that worker makes none of its shards";
  EXPECT_EQ(Why(), "");
  rig.Pass(100, alive);
  EXPECT_FALSE(rig.Shards().empty());
}

TEST_F(StreamCauses, DrainedUntilTheNodeIsResumed) {
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kDrain, ""});
  Attach();
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_EQ(Why(), "drained");
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kResume, ""});
  EXPECT_EQ(rig.Shards().size(), 2u);
}

TEST_F(StreamCauses, AreLoggedForTheTrainerOnceAChange) {
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kDrain, ""});
  Attach();
  rig.Pass(6000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  rig.Tell(CoreRig::kOps, protocol::FetchLogs{job, 0});
  int told = 0;
  for (const auto& line : rig.Find<protocol::LogsFetched>()->lines) {
    told += line.text.find("waits, drained: node node is drained; it starts when it is resumed") !=
                    std::string::npos
                ? 1
                : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST_F(StreamCauses, NumericsUntilAWorkerOfItsClassJoins) {
  rig.Exited(0, 100);
  Attach();
  EXPECT_EQ(Why(), "no_node");
  rig.AddAgent(4, 1, 1);
  rig.AddGpuWorker(1);
  EXPECT_EQ(Why(), "numerics");
  EXPECT_TRUE(rig.Shards().empty());
  rig.AddWorker(2);
  EXPECT_EQ(rig.Shards().size(), 2u);
}

TEST_F(StreamCauses, RecoveryUntilTheHolderOfItsRingIsBack) {
  rig.Restart();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  rig.AddAgent();
  Attach(5, 2, {1000});
  EXPECT_EQ(Why(), "recovery");
}

/// A row says what is made, held and wanted, and how long trainers waited.
TEST_F(StreamCauses, RowsCountPatchesCoresAndStalls) {
  protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.patches_made, 0u);
  EXPECT_EQ(row.patches_total, 20u) << "an epoch";
  Attach(5, 1);
  const auto shards = rig.Shards();
  rig.Pass(1000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  row = rig.Row(job);
  EXPECT_GE(row.stalled_ms, 900u);
  EXPECT_EQ(row.held_cpu_millis, 1000u);
  const std::uint64_t stalled = row.stalled_ms;
  for (const auto& shard : shards) {
    Return(shard);
    Count(shard);
  }
  rig.Pass(1000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  row = rig.Row(job);
  EXPECT_EQ(row.patches_made, 8u);
  EXPECT_LE(row.stalled_ms, stalled + 100) << "it has a full slot";
  EXPECT_EQ(row.held_cpu_millis, 0u);
  EXPECT_EQ(row.wanted_cpu_millis, 0u) << "its ring is full";
}

/// Batches of two shards of 100 ms, one a second: a fifth of a core, however many workers idle.
TEST_F(StreamCauses, AStreamWantsWhatItsTrainerConsumes) {
  rig.AddWorker(1);
  Attach(5, 2);
  std::vector<protocol::ShardLease> shards = rig.Shards();
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    for (const auto& shard : shards) {
      protocol::ShardsReturned returned;
      returned.items.push_back({shard.lease, job, shard.shard, {}, {100'000, 0, 0, 0}});
      for (const PeerId worker : {CoreRig::kWorker0, CoreRig::kWorker0 + 1}) {
        rig.Tell(worker, returned);
      }
      Count(shard);
    }
    rig.Pass(1000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1, CoreRig::kTrainer0});
    protocol::AnnounceSlots taken;
    taken.stream = job;
    taken.slots.push_back({static_cast<std::uint32_t>(batch % 2),
                           2 + batch / 2,
                           protocol::SlotState::kFree,
                           0,
                           0,
                           {}});
    rig.Tell(CoreRig::kTrainer0, taken);
    shards = rig.Shards();
  }
  EXPECT_EQ(shards.size(), 2u);
  EXPECT_EQ(rig.Row(job).wanted_cpu_millis, 200u);
  rig.Pass(4000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1, CoreRig::kTrainer0});
  EXPECT_EQ(rig.Row(job).wanted_cpu_millis, 200u) << "its slot is still free";
}

TEST_F(Causes, RowsOfBatchJobsCountCores) {
  rig.AddAgent(2);
  rig.AddWorker(0);
  rig.AddWorker(1);
  const JobId job = rig.Submit("job");
  const TaskLease root = rig.Granted().at(0);
  rig.Finish(CoreRig::kWorker0, root, {Spec(), Spec(), Spec(), Spec(), Spec()});
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1});
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.held_cpu_millis, 2000u);
  EXPECT_EQ(row.wanted_cpu_millis, 2000u) << "no more than there is";
}

}  // namespace
}  // namespace patchbay::scheduler
