// A node's key in use on two machines.
#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

constexpr PeerId kSecondAgent = 3;

class KeyOnTwoMachines : public testing::Test {
 protected:
  void SetUp() override {
    rig.Join(kSecondAgent, Role::kWorker, "node");
    ASSERT_EQ(Register(CoreRig::kAgent, "first", 1), "");
  }
  /// The error that refused the registration; "" when none did.
  std::string Register(PeerId agent, const std::string& machine, std::uint64_t incarnation) {
    protocol::RegisterAgent hello;
    hello.node = "node";
    hello.host_identity = machine;
    hello.host_name = machine + ".site";
    hello.cpus = 1;
    hello.agent_incarnation = incarnation;
    rig.Tell(agent, hello);
    const auto* failed = rig.FindFor<protocol::RequestFailed>(agent);
    return failed == nullptr ? "" : TextOf(failed->outcome);
  }

  CoreRig rig;
};

TEST_F(KeyOnTwoMachines, TheSecondIsRefusedAndToldOfTheFirst) {
  EXPECT_NE(Register(kSecondAgent, "second", 2).find("in use on first.site"), std::string::npos);
  EXPECT_EQ(Register(CoreRig::kAgent, "first", 1), "") << "the first was displaced";
  rig.Pass(60'000);
  EXPECT_NE(Register(kSecondAgent, "second", 2), "") << "the first still lives";
}

TEST_F(KeyOnTwoMachines, TheSecondMayOnceTheFirstIsGone) {
  rig.Leave(CoreRig::kAgent);
  EXPECT_EQ(Register(kSecondAgent, "second", 2), "");
}

TEST_F(KeyOnTwoMachines, TheSecondMayOnceTheFirstIsSilent) {
  rig.Pass(60'000, {});
  EXPECT_EQ(Register(kSecondAgent, "second", 2), "");
}

TEST_F(KeyOnTwoMachines, AnotherAgentOfTheSameMachineTakesOver) {
  EXPECT_EQ(Register(kSecondAgent, "first", 2), "");
  EXPECT_NE(Register(CoreRig::kAgent, "first", 1).find("a newer agent"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::scheduler
