// A node's key in use on two machines, and an agent that speaks for its workers.
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

class AgentsHeartbeat : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent(2);
    rig.AddWorker(0);
    rig.AddWorker(1);
  }
  /// Time passes; only the agent sends heartbeats.
  void Pass(TimeMs ms, std::vector<std::uint32_t> silent) {
    for (TimeMs passed = 0; passed < ms; passed += 500) {
      rig.Tell(CoreRig::kAgent, protocol::Heartbeat{.silent = silent}, 0);
      rig.Pass(500, {});
    }
  }
  std::string StateOf(std::uint32_t index) {
    rig.Tell(CoreRig::kOps, protocol::DescribeCluster{});
    for (const auto& row : rig.Find<protocol::ClusterDescribed>()->workers) {
      if (row.index == index) return row.state;
    }
    return "gone";
  }

  CoreRig rig;
};

TEST_F(AgentsHeartbeat, SpeaksForItsWorkersButForThoseThatItDoesNotHear) {
  Pass(10'000, {});
  EXPECT_EQ(StateOf(0), "idle");
  Pass(4'000, {1});
  EXPECT_EQ(StateOf(0), "idle");
  EXPECT_EQ(StateOf(1), "suspect");
  rig.Submit("one");
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_NE(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0), nullptr);
  rig.Submit("another");
  EXPECT_EQ(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 1), nullptr);
  Pass(500, {});
  EXPECT_EQ(StateOf(1), "busy");
}

TEST_F(AgentsHeartbeat, DoesNotSpeakForAWorkerWithoutAConnection) {
  rig.Submit("job");
  const auto tasks = rig.Granted();
  ASSERT_EQ(tasks.size(), 1u);
  const bool first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
  rig.Leave(CoreRig::kWorker0 + (first ? 0 : 1));
  bool again = false;
  for (int look = 0; look < 6; ++look) {
    Pass(500, {});
    again = again || !rig.Granted().empty();
  }
  EXPECT_TRUE(again) << "the other worker has the task now";
}

}  // namespace
}  // namespace patchbay::scheduler
