// Work is given to workers with a warm cache, but no work waits for them.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::SlotState;

TEST(GroupAffinity, AWorkerIsGivenMoreOfTheGroupItWorkedOn) {
  CoreRig rig;
  rig.AddAgent();
  rig.AddWorker(0);
  rig.AddWorker(1);
  rig.Submit("key");
  const protocol::TaskLease root = rig.Granted().at(0);
  std::vector<protocol::TaskSpec> tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.push_back(Spec(StrCat("a", i), 1));
    tasks.push_back(Spec(StrCat("b", i), 2));
  }
  rig.Finish(CoreRig::kWorker0, root, tasks);
  const auto* first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0);
  const auto* second = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  protocol::TaskLease a = first->tasks.at(0), b = second->tasks.at(0);
  if (a.op == "b0") std::swap(a, b);
  const PeerId worker_of_b = first->tasks.at(0).op == "b0" ? CoreRig::kWorker0 : 11;
  rig.Finish(worker_of_b, b);
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].op, "b1") << "a1 is older";
  rig.Finish(worker_of_b, rig.Granted()[0]);
  EXPECT_EQ(rig.Granted().at(0).op, "b2");
  rig.Finish(worker_of_b, rig.Granted()[0]);
  ASSERT_EQ(rig.Granted().size(), 1u) << "it is not left without work";
  EXPECT_EQ(rig.Granted()[0].op, "a1");
}

/// Batches of 8 patches in shards of 4, 20 patches an epoch in order, of two images.
constexpr char kSequential[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":20,"global_batch":8,"tail":"keep",)"
    R"("world_size":1,"shard_patches":4,"numerics":"cpu","image_runs":[[10,2]]}})";

class ImageAffinity : public testing::Test {
 protected:
  void Open(std::uint32_t workers, const std::string& plan = kSequential) {
    rig.AddAgent();
    for (std::uint32_t i = 0; i < workers; ++i) rig.AddWorker(i);
    job = rig.Submit("key", "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, plan);
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  }
  void Attach(std::uint32_t slots, const std::string& ucx = "") {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.endpoint.host_identity = "host";
    attach.endpoint.remote_address = ucx;
    for (std::uint32_t i = 0; i < slots; ++i)
      attach.slots.push_back({i, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, attach);
  }
  /// First patches of the shards that the peer was given.
  std::vector<std::uint64_t> GivenTo(PeerId peer) const {
    std::vector<std::uint64_t> given;
    const auto* granted = rig.FindFor<protocol::LeasesGranted>(peer);
    if (granted == nullptr) return given;
    for (const auto& shard : granted->shards) given.push_back(shard.first_ordinal);
    return given;
  }
  using Patches = std::vector<std::uint64_t>;
  CoreRig rig;
  JobId job = 0;
};

TEST_F(ImageAffinity, ConsecutiveShardsOfAnImageGoToOneWorkerWhileItKeepsUp) {
  Open(2);
  Attach(2);
  EXPECT_EQ(GivenTo(CoreRig::kWorker0), (Patches{0, 4}));
  EXPECT_EQ(GivenTo(CoreRig::kWorker0 + 1), (Patches{8, 12}));
}

TEST_F(ImageAffinity, TheNextImageIsReadBeforeTheLastOfThisOneIsDone) {
  Open(2);
  Attach(2);
  // Patches 0 to 9 are of the first image; none of them is done.
  const Patches other = GivenTo(CoreRig::kWorker0 + 1);
  EXPECT_TRUE(std::any_of(other.begin(), other.end(), [](auto first) { return first >= 10; }));
}

TEST_F(ImageAffinity, LeavesNobodyIdle) {
  Open(2);
  Attach(1);
  EXPECT_EQ(GivenTo(CoreRig::kWorker0).size(), 1u) << "both shards are of one image";
  EXPECT_EQ(GivenTo(CoreRig::kWorker0 + 1).size(), 1u);
}

TEST_F(ImageAffinity, RunsThatDoNotAddUpFailTheStream) {
  std::string plan = kSequential;
  plan.replace(plan.find("[[10,2]]"), 8, "[[10,3]]");
  Open(1, plan);
  EXPECT_EQ(rig.Row(job).state, protocol::JobState::kFailed);
}

TEST_F(ImageAffinity, TheTrainersNodeComesFirst) {
  Open(1);
  rig.Join(90, Role::kWorker, "other");
  protocol::RegisterAgent agent;
  agent.node = "other";
  agent.host_identity = "other host";
  agent.cpus = 4;
  agent.agent_incarnation = 9;
  rig.Tell(90, agent);
  rig.Join(91, Role::kWorker, "other");
  protocol::RegisterWorker hello;
  hello.node = "other";
  hello.agent_incarnation = 9;
  hello.worker_incarnation = 900;
  hello.pid = 7;
  hello.capacity = {1000, 0, 0};
  rig.Tell(91, hello);
  Attach(1, "there");
  EXPECT_EQ(GivenTo(CoreRig::kWorker0), (Patches{0, 4})) << "although another has nothing to do";
  EXPECT_TRUE(GivenTo(91).empty());
  protocol::AnnounceSlots more;
  more.stream = job;
  more.slots.push_back({1, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, more);
  EXPECT_EQ(GivenTo(91), (Patches{8, 12})) << "the trainer's node has all it can take";
}

}  // namespace
}  // namespace patchbay::scheduler
