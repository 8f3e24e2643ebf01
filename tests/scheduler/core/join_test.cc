// Ranks of one run: joining a stream job by its name, where they begin, and whose code makes their
// shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::SlotState;

constexpr char kTwoRankPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":20,"global_batch":8,"tail":"keep",)"
    R"("world_size":2,"shard_patches":4,"numerics":"cpu","start":[1,2],"versions":"v1"}})";

class Joining : public testing::Test {
 protected:
  protocol::SubmitJob Submission() {
    protocol::SubmitJob submit;
    submit.submission_key = StrCat("key ", ++keys_);
    submit.kind = "stream";
    submit.name = "run";
    submit.join = true;
    submit.world_size = 2;
    submit.manifest = R"({"images":["/data/a"]})";
    submit.root.op = "stream.plan";
    submit.root.payload = R"({"batch":{"global_size":8},"cluster_numerics":"cpu","start":[1,2]})";
    return submit;
  }
  /// The job that answers it, or 0 when it is refused (see `refusal`).
  JobId Submit(protocol::SubmitJob submit) {
    rig.Tell(CoreRig::kOps, std::move(submit));
    refusal = rig.Find<protocol::RequestFailed>() == nullptr
                  ? ""
                  : TextOf(rig.Find<protocol::RequestFailed>()->outcome);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  JobId Plan() {
    rig.AddAgent();
    AddWorker("v1");
    const JobId job = Submit(Submission());
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kTwoRankPlan);
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
    return job;
  }
  void AddWorker(const std::string& versions, std::uint64_t incarnation = 100) {
    rig.Join(CoreRig::kWorker0, Role::kWorker, "node");
    protocol::RegisterWorker hello;
    hello.node = "node";
    hello.agent_incarnation = 1;
    hello.worker_incarnation = incarnation;
    hello.pid = 1000;
    hello.capacity = {1000, 0, 1 << 20};
    hello.byte_versions = versions;
    rig.Tell(CoreRig::kWorker0, hello);
  }
  std::string Attach(JobId job, std::uint32_t epoch, std::uint64_t batch,
                     std::uint64_t incarnation) {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.world_size = 2;
    attach.first_epoch = epoch;
    attach.first_batch = batch;
    attach.trainer_incarnation = incarnation;
    attach.endpoint.host_identity = "host";
    attach.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, attach);
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }

  CoreRig rig;
  std::string refusal;

 private:
  int keys_ = 0;
};

TEST_F(Joining, RanksThatSubmitTheSameAreOneJob) {
  const JobId job = Submit(Submission());
  ASSERT_NE(job, 0u) << refusal;
  EXPECT_EQ(Submit(Submission()), job);
  protocol::SubmitJob other_cluster = Submission();
  other_cluster.root.payload =
      R"({"batch":{"global_size":8},"cluster_numerics":"cuda","start":[1,2]})";
  EXPECT_EQ(Submit(other_cluster), job)
      << "what the cluster had at the time says nothing of the run";
}

TEST_F(Joining, WithoutTheWishEachIsAJobOfItsOwn) {
  protocol::SubmitJob own = Submission();
  own.join = false;
  const JobId job = Submit(own);
  own.submission_key = "another";
  EXPECT_NE(Submit(own), job);
}

TEST_F(Joining, AnotherRunUnderThatNameIsRefusedNamingWhatDiffers) {
  ASSERT_NE(Submit(Submission()), 0u);
  const auto refused = [this](auto&& change) {
    protocol::SubmitJob submit = Submission();
    change(submit);
    EXPECT_EQ(Submit(submit), 0u);
    return refusal;
  };
  EXPECT_THAT(refused([](auto& s) { s.world_size = 3; }),
              testing::HasSubstr("runs for 2 ranks, not 3"));
  EXPECT_THAT(refused([](auto& s) { s.manifest = R"({"images":["/data/b"]})"; }),
              testing::HasSubstr("over another dataset"));
  EXPECT_THAT(
      refused([](auto& s) { s.root.payload = R"({"batch":{"global_size":9},"start":[1,2]})"; }),
      testing::HasSubstr("with another config: key 'batch.global_size' differs"));
  EXPECT_THAT(
      refused([](auto& s) { s.root.payload = R"({"batch":{"global_size":8},"start":[0,0]})"; }),
      testing::HasSubstr("from epoch 1, batch 2, not from epoch 0, batch 0"));
  EXPECT_THAT(refused([](auto& s) { s.kind = "noop"; }),
              testing::HasSubstr("only stream jobs with a name can be joined"));
  EXPECT_THAT(refused([](auto& s) { s.name = ""; }),
              testing::HasSubstr("only stream jobs with a name can be joined"));
}

TEST_F(Joining, AJobThatHasEndedIsNotJoined) {
  const JobId job = Submit(Submission());
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  const JobId next = Submit(Submission());
  EXPECT_NE(next, job);
  EXPECT_NE(next, 0u) << refusal;
}

TEST_F(Joining, ARankBeginsWhereTheJobDoesAndMayComeBackLater) {
  const JobId job = Plan();
  EXPECT_THAT(Attach(job, 0, 0, 5),
              testing::HasSubstr("rank 0 begins at epoch 0, batch 0, the job at epoch 1, batch 2"));
  EXPECT_THAT(Attach(job, 2, 0, 5), testing::HasSubstr("begins at epoch 2"));
  EXPECT_EQ(Attach(job, 1, 2, 5), "");
  EXPECT_EQ(Attach(job, 2, 1, 6), "") << "another process of the rank goes on later";
  EXPECT_THAT(Attach(job, 1, 1, 7), testing::HasSubstr("begins at epoch 1, batch 1"));
}

TEST_F(Joining, ARankGoesOnAfterARestartWhoseWorkersHadAllEndedBefore) {
  const JobId job = Plan();
  ASSERT_EQ(Attach(job, 1, 2, 5), "");
  rig.Exited(0, 100);
  rig.Restart();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  EXPECT_EQ(Attach(job, 2, 1, 5), "");
}

TEST_F(Joining, WorkersOfOtherCodeGetNoShard) {
  const JobId job = Plan();
  rig.Exited(0, 100);
  AddWorker("v2", 101);
  EXPECT_EQ(Attach(job, 1, 2, 5), "");
  EXPECT_TRUE(rig.Shards().empty());
  rig.Pass(60'000, {CoreRig::kAgent, CoreRig::kTrainer0});
  EXPECT_THAT(
      TextOf(rig.Row(job).failed.at(0).outcome),
      testing::HasSubstr("the plan is of code of versions v1, and no CPU worker has the same"));
}

}  // namespace
}  // namespace patchbay::scheduler
