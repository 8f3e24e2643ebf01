// Connections, nodes and workers at the limits of what is taken in.
#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

class ClusterBounds : public testing::Test {
 protected:
  ~ClusterBounds() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  static std::string NameOf(std::size_t node) { return StrCat("node ", node); }
  static PeerId AgentOf(std::size_t node) { return 10'000 + 2 * node; }
  static PeerId WorkerOf(std::size_t node) { return AgentOf(node) + 1; }
  /// Why it was refused; "" when it was not.
  std::string Refusal() const {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    if (failed == nullptr) return "";
    EXPECT_EQ(failed->outcome.code, static_cast<int>(absl::StatusCode::kResourceExhausted));
    return failed->outcome.message;
  }
  std::string AddAgent(std::size_t node) {
    rig.Join(AgentOf(node), Role::kWorker, NameOf(node));
    protocol::RegisterAgent hello;
    hello.node = NameOf(node);
    hello.host_identity = NameOf(node);
    hello.cpus = 1;
    hello.agent_incarnation = 1;
    rig.Tell(AgentOf(node), hello);
    return Refusal();
  }
  std::string AddWorker(std::size_t node, std::size_t index = 0) {
    rig.Join(WorkerOf(node), Role::kWorker, NameOf(node));
    protocol::RegisterWorker hello;
    hello.node = NameOf(node);
    hello.index = static_cast<std::uint32_t>(index);
    hello.agent_incarnation = 1;
    hello.worker_incarnation = 100 + index;
    hello.pid = 1000;
    hello.capacity = {1000, 0, 0};
    rig.Tell(WorkerOf(node), hello);
    return Refusal();
  }

  CoreRig rig;
};

TEST_F(ClusterBounds, NodesAreSoManyAndThoseThatAreKnownComeBack) {
  for (std::size_t node = 1; node < kMaxNodes; ++node) ASSERT_EQ(AddAgent(node), "") << node;
  EXPECT_EQ(AddWorker(kMaxNodes), "") << "the last may begin with a worker";
  EXPECT_EQ(AddWorker(kMaxNodes + 1), "register worker: node 1025: there are 1024 nodes already");
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "register agent: node 1025: there are 1024 nodes already");
  EXPECT_EQ(AddAgent(kMaxNodes), "");
  EXPECT_EQ(AddAgent(1), "");
  EXPECT_EQ(AddWorker(1), "");
  rig.Tell(CoreRig::kOps, protocol::DescribeCluster{});
  ASSERT_NE(rig.Find<protocol::ClusterDescribed>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::ClusterDescribed>()->nodes.size(), kMaxNodes);
  EXPECT_EQ(rig.core().gauges().workers, 2u);
}

TEST_F(ClusterBounds, ANodesWorkersHaveSoManyPlaces) {
  ASSERT_EQ(AddAgent(1), "");
  EXPECT_EQ(AddWorker(1, kMaxWorkersPerNode - 1), "");
  EXPECT_EQ(AddWorker(1, kMaxWorkersPerNode),
            "register worker: node 1: no place 1024: a node has at most 1024 workers");
  EXPECT_NE(AddWorker(1, UINT32_MAX), "");
  EXPECT_EQ(rig.core().gauges().workers, 1u);
}

TEST_F(ClusterBounds, AnEndIsNotedOfPlacesThatThereAre) {
  ASSERT_EQ(AddAgent(1), "");
  const auto workers_after = [this](std::size_t index) {
    rig.Tell(AgentOf(1),
             protocol::WorkerExited{NameOf(1), static_cast<std::uint32_t>(index), 5, 0});
    EXPECT_NE(rig.Find<protocol::WorkerExitSeen>(), nullptr) << "or it would be said for ever";
    return rig.core().gauges().workers;
  };
  EXPECT_EQ(workers_after(kMaxWorkersPerNode), 0u);
  EXPECT_EQ(workers_after(UINT32_MAX), 0u);
  EXPECT_EQ(workers_after(kMaxWorkersPerNode - 1), 1u) << "its registration may still come";
}

TEST_F(ClusterBounds, SoManyFormerProcessesOfAPlaceStayOut) {
  ASSERT_EQ(AddAgent(1), "");
  const auto is_refused = [this](std::uint64_t incarnation) {
    rig.Join(WorkerOf(1), Role::kWorker, NameOf(1));
    protocol::RegisterWorker hello;
    hello.node = NameOf(1);
    hello.agent_incarnation = 1;
    hello.worker_incarnation = incarnation;
    hello.capacity = {1000, 0, 0};
    rig.Tell(WorkerOf(1), hello);
    return rig.Find<protocol::RequestFailed>() != nullptr;
  };
  for (std::uint64_t life = 1; life <= kMaxDeadIncarnations + 1; ++life) {
    rig.Tell(AgentOf(1), protocol::WorkerExited{NameOf(1), 0, life, 0});
  }
  EXPECT_TRUE(is_refused(2));
  EXPECT_TRUE(is_refused(kMaxDeadIncarnations + 1));
  EXPECT_FALSE(is_refused(1)) << "longer ago than is remembered";
}

TEST_F(ClusterBounds, AConnectionPastTheLimitIsCutOffUntilAnotherLeaves) {
  // Two were there before: the operator's and the agent's.
  constexpr PeerId kFirst = 1'000, kLast = kFirst + kMaxPeers - 3;
  for (PeerId peer = kFirst; peer <= kLast; ++peer) rig.Join(peer, Role::kSubmitter, "ann");
  const auto is_cut_off = [this](PeerId peer) {
    Actions actions;
    rig.core().Receive(peer, {protocol::kProtocolVersion, 99, 7, protocol::DescribeJobs{}},
                       {1'000, 0}, actions);
    EXPECT_EQ(actions.sends.size() + actions.disconnects.size(), 1u) << peer;
    return actions.disconnects == std::vector<PeerId>{peer};
  };
  EXPECT_FALSE(is_cut_off(kLast));
  rig.Join(kLast + 1, Role::kSubmitter, "ann");
  EXPECT_TRUE(is_cut_off(kLast + 1));
  rig.Leave(kLast + 1);
  rig.Leave(kFirst);
  EXPECT_TRUE(is_cut_off(kLast + 1)) << "it is to connect again";
  rig.Join(kLast + 2, Role::kSubmitter, "ann");
  EXPECT_FALSE(is_cut_off(kLast + 2));
  rig.Join(kLast + 3, Role::kSubmitter, "ann");
  EXPECT_TRUE(is_cut_off(kLast + 3));
}

}  // namespace
}  // namespace patchbay::scheduler
