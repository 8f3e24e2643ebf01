// The numerics of a stream decide which workers make its shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::SlotState;
using testing::HasSubstr;

class StreamNumerics : public testing::Test {
 protected:
  /// Worker 0 makes CPU bits and plans the stream; a trainer with room for three batches attaches.
  void Stream(const std::string& numerics) {
    Plan(numerics);
    Attach();
  }
  /// The same, with a GPU's worker 1.
  void StreamBesideAGpu(const std::string& numerics) {
    Plan(numerics);
    rig.AddGpuWorker(1);
    Attach();
  }
  void Plan(const std::string& numerics) {
    rig.AddWorker(0);
    job = rig.Submit("key", "stream");
    const std::string plan =
        R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":60,"global_batch":8,"tail":)"
        R"("keep","world_size":1,"shard_patches":2)" +
        (numerics.empty() ? "" : R"(,"numerics":")" + numerics + R"(")") + "}}";
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, plan);
  }
  void Attach() {
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.endpoint.host_identity = "host";
    for (std::uint32_t i = 0; i < 3; ++i)
      attach.slots.push_back({i, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, attach);
  }
  bool Given(std::uint32_t worker) const {
    const auto* granted = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + worker);
    return granted != nullptr && !granted->shards.empty();
  }
  /// Why the stream failed within so long; the code is -1 while it goes on.
  Outcome FailsWithin(TimeMs ms) {
    rig.Pass(ms, {CoreRig::kAgent, CoreRig::kTrainer0});
    const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
    return failed == nullptr ? Outcome{-1, "it goes on"} : failed->outcome;
  }
  CoreRig rig;
  JobId job = 0;
};

TEST_F(StreamNumerics, CudaGoesToGpuWorkersOnly) {
  rig.AddAgent(4, 1, 1);
  StreamBesideAGpu("cuda");
  EXPECT_TRUE(Given(1));
  EXPECT_FALSE(Given(0));
}

TEST_F(StreamNumerics, CpuGoesToCpuWorkersOnly) {
  rig.AddAgent(4, 1, 1);
  StreamBesideAGpu("cpu");
  EXPECT_TRUE(Given(0));
  EXPECT_FALSE(Given(1));
}

TEST_F(StreamNumerics, StrictGoesToBoth) {
  rig.AddAgent(4, 1, 1);
  StreamBesideAGpu("strict");
  EXPECT_TRUE(Given(0));
  EXPECT_TRUE(Given(1));
}

TEST_F(StreamNumerics, CudaWithoutAGpuInTheClusterFailsAtOnceAndSaysSo) {
  rig.AddAgent();
  Stream("cuda");
  EXPECT_TRUE(rig.Shards().empty());
  const Outcome why = FailsWithin(3'500);
  EXPECT_EQ(why.code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(TextOf(why), HasSubstr("numerics cuda: the cluster has no GPU worker"));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(StreamNumerics, CpuOnNodesThatStartGpuWorkersOnlyFailsAtOnce) {
  rig.AddAgent(4, 1, 1);
  Stream("cpu");
  rig.Exited(0, 100);
  rig.AddAgent(0, 1, 1);
  EXPECT_THAT(TextOf(FailsWithin(4'500)), HasSubstr("numerics cpu: the cluster has no CPU worker"));
}

TEST_F(StreamNumerics, AGpuWorkerThatIsStillStartingIsWaitedFor) {
  rig.AddAgent(4, 1, 1);
  Stream("cuda");
  EXPECT_EQ(FailsWithin(20'000).code, -1);
  rig.AddGpuWorker(1);
  EXPECT_TRUE(Given(1));
}

TEST_F(StreamNumerics, AGpuWorkerThatNeverStartsIsWaitedForThirtySeconds) {
  rig.AddAgent(4, 1, 1);
  Stream("cuda");
  EXPECT_EQ(FailsWithin(29'000).code, -1);
  EXPECT_THAT(TextOf(FailsWithin(2'000)), HasSubstr("no GPU worker has been running for 30 s"));
}

TEST_F(StreamNumerics, ANodeThatFellSilentIsNamed) {
  rig.AddAgent(4, 1, 1);
  StreamBesideAGpu("cuda");
  rig.Pass(100'000, {CoreRig::kTrainer0});
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_THAT(TextOf(failed->outcome), HasSubstr("no GPU worker is left: node node has not answ"));
}

TEST_F(StreamNumerics, APlanThatDoesNotSayWhoseBitsItWantsIsRefused) {
  rig.AddAgent();
  Stream("");
  const auto* refused = rig.FindFor<protocol::RequestFailed>(CoreRig::kTrainer0);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(StreamNumerics, APlanWithUnknownNumericsIsRefused) {
  rig.AddAgent();
  Stream("abacus");
  ASSERT_NE(rig.FindFor<protocol::RequestFailed>(CoreRig::kTrainer0), nullptr);
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

}  // namespace
}  // namespace patchbay::scheduler
