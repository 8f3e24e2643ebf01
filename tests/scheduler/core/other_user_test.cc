// A trainer and workers of one machine that belong to different users.
#include <gtest/gtest.h>

#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

class OtherUser : public testing::Test {
 protected:
  void SetUp() override {
    AddNode("machine-user1");
    rig.AddWorker();
    job = rig.Submit("key", "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kOneBatchPlan);
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  }
  void AddNode(const std::string& host_identity) {
    rig.Join(CoreRig::kAgent, Role::kWorker, "node");
    protocol::RegisterAgent hello;
    hello.node = "node";
    hello.host_identity = host_identity;
    hello.cpus = 2;
    hello.memory_bytes = 1 << 20;
    hello.agent_incarnation = 1;
    rig.Tell(CoreRig::kAgent, hello);
  }
  /// The error that refused the attach; empty when none did.
  std::string Attach(const std::string& host_identity, const std::string& remote_address = "") {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.endpoint.host_identity = host_identity;
    attach.endpoint.remote_address = remote_address;
    attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, attach);
    const auto* failed = rig.FindFor<protocol::RequestFailed>(CoreRig::kTrainer0);
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }

  CoreRig rig;
  JobId job = 0;
};

TEST_F(OtherUser, IsToldAtAttachThatNoMemoryCanBeShared) {
  EXPECT_NE(Attach("machine-user2").find("run as another user"), std::string::npos);
}

TEST_F(OtherUser, IsTakenAsAnotherNodeWhenBatchesMayComeOverTheNetwork) {
  EXPECT_EQ(Attach("machine-user2", "address"), "");
}

TEST_F(OtherUser, IsNotSeenWhereTheUserOrTheMachineFits) {
  EXPECT_EQ(Attach("elsewhere-user2"), "");
  EXPECT_EQ(Attach("machine-user1"), "");
}

}  // namespace
}  // namespace patchbay::scheduler
