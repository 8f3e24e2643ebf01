// Peers that a trainer or the scheduler turned away, as told to those who may see it.
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

class DroppedPeersOfTrainers : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key", "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kOneBatchPlan);
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
    rig.Join(kStranger, Role::kSubmitter, "somebody else");
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, attach);
  }
  void Report(std::vector<protocol::PeersDropped::Item> items, PeerId from = CoreRig::kTrainer0) {
    rig.Tell(from, protocol::PeersDropped{job, 0, std::move(items)});
  }
  std::vector<protocol::PeersDropped> SeenBy(PeerId peer) {
    rig.Tell(peer, protocol::DescribeCluster{});
    const auto* described = rig.FindFor<protocol::ClusterDescribed>(peer);
    EXPECT_NE(described, nullptr);
    return described == nullptr ? std::vector<protocol::PeersDropped>() : described->peers_dropped;
  }

  CoreRig rig;
  JobId job = 0;
};

TEST_F(DroppedPeersOfTrainers, AreShownAsLastReportedToWhoMaySeeTheJob) {
  EXPECT_TRUE(SeenBy(CoreRig::kOps).empty());
  Report({{"10.0.0.7", "no key", 3, 1000}});
  Report({{"10.0.0.7", "no key", 4, 1001}, {"fd00::1", "too late", 1, 1002}});
  const auto seen = SeenBy(CoreRig::kOps);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].stream, job);
  ASSERT_EQ(seen[0].items.size(), 2u);
  EXPECT_EQ(seen[0].items[0], (protocol::PeersDropped::Item{"10.0.0.7", "no key", 4, 1001}));
  EXPECT_TRUE(SeenBy(kStranger).empty()) << "another user's stream";
}

TEST_F(DroppedPeersOfTrainers, AreTakenFromTheTrainerAlone) {
  Report({{"10.0.0.7", "no key", 3, 1000}}, kStranger);
  EXPECT_NE(rig.FindFor<protocol::RequestFailed>(kStranger), nullptr);
  EXPECT_TRUE(SeenBy(CoreRig::kOps).empty());
}

TEST_F(DroppedPeersOfTrainers, OfTheSchedulersOwnPortAreShownToOperatorsAlone) {
  rig.core().PeersDropped({{"10.0.0.9", "its key is not known", 7, 1003}});
  const auto seen = SeenBy(CoreRig::kOps);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].stream, 0u);
  ASSERT_EQ(seen[0].items.size(), 1u);
  EXPECT_EQ(seen[0].items[0],
            (protocol::PeersDropped::Item{"10.0.0.9", "its key is not known", 7, 1003}));
  EXPECT_TRUE(SeenBy(kStranger).empty());
}

TEST_F(DroppedPeersOfTrainers, AreCutAndCleaned) {
  const std::string hostile = "\x1b[2J\n\xff" + std::string(10'000, 'x');
  Report(std::vector<protocol::PeersDropped::Item>(500, {hostile, hostile, 1, 1}));
  const auto seen = SeenBy(CoreRig::kOps);
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_EQ(seen[0].items.size(), protocol::kMaxDroppedPeers);
  for (const std::string& text : {seen[0].items[0].address, seen[0].items[0].reason}) {
    EXPECT_EQ(text.size(), kMaxPeerTextBytes);
    EXPECT_EQ(text.substr(0, 7), "?[2J??x");
  }
}

}  // namespace
}  // namespace patchbay::scheduler
