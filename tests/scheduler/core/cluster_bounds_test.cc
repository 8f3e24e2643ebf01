// Connections, nodes and workers at the scheduler's limits.
#include <set>
#include <string>
#include <vector>

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
  /// A node that is silent for a second is not listed any more.
  static CoreOptions ForgetsSoon() {
    CoreOptions options;
    options.forget_node_ms = 1'000;
    return options;
  }
  /// Why it was refused; "" when it was not.
  std::string Refusal(absl::StatusCode code = absl::StatusCode::kResourceExhausted) const {
    const auto* failed = rig.Find<protocol::RequestFailed>();
    if (failed == nullptr) return "";
    EXPECT_EQ(failed->outcome.code, static_cast<int>(code));
    return TextOf(failed->outcome);
  }
  static protocol::RegisterAgent AgentHello(std::size_t node, std::uint64_t incarnation = 1) {
    protocol::RegisterAgent hello;
    hello.node = NameOf(node);
    hello.host_identity = NameOf(node);
    hello.cpus = 1;
    hello.agent_incarnation = incarnation;
    return hello;
  }
  std::string AddAgent(std::size_t node, std::uint64_t incarnation = 1) {
    rig.Join(AgentOf(node), Role::kWorker, NameOf(node));
    rig.Tell(AgentOf(node), AgentHello(node, incarnation));
    return Refusal();
  }
  static protocol::RegisterWorker WorkerHello(std::size_t node, std::size_t index = 0) {
    protocol::RegisterWorker hello;
    hello.node = NameOf(node);
    hello.index = static_cast<std::uint32_t>(index);
    hello.agent_incarnation = 1;
    hello.worker_incarnation = 100 + index;
    hello.pid = 1000;
    hello.capacity = {1000, 0, 0};
    return hello;
  }
  std::string AddWorker(std::size_t node, std::size_t index = 0) {
    rig.Join(WorkerOf(node), Role::kWorker, NameOf(node));
    rig.Tell(WorkerOf(node), WorkerHello(node, index));
    return Refusal();
  }
  /// So many nodes are there, numbered from 1.
  void Fill(std::size_t nodes = kMaxNodes) {
    for (std::size_t node = 1; node <= nodes; ++node) ASSERT_EQ(AddAgent(node), "") << node;
  }
  void Leave(std::size_t node) {
    rig.Leave(AgentOf(node));
    rig.Leave(WorkerOf(node));
  }
  /// Long enough to be listed no more passes for the nodes that left.
  void PassForOthers(const std::set<std::size_t>& left, TimeMs ms = 2'000) {
    std::vector<PeerId> alive;
    for (std::size_t node = 1; node <= kMaxNodes; ++node) {
      if (left.count(node) == 0) alive.push_back(AgentOf(node));
    }
    rig.Pass(ms, alive);
  }

  CoreRig rig{true, ForgetsSoon()};
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

TEST_F(ClusterBounds, TheNodeThatLeftLongestAgoMakesRoom) {
  Fill();
  ASSERT_EQ(AddAgent(7, 2), "");
  ASSERT_EQ(AddAgent(9, 2), "");
  Leave(9);
  PassForOthers({9}, 500);
  Leave(7);
  PassForOthers({7, 9});
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "");
  rig.Tell(AgentOf(7), AgentHello(7));
  rig.Join(AgentOf(7), Role::kWorker, NameOf(7));
  rig.Tell(AgentOf(7), AgentHello(7));
  EXPECT_EQ(Refusal(absl::StatusCode::kAborted), "register agent: a newer agent has this node");
  EXPECT_EQ(AddAgent(9, 2), "") << "it comes back when there is room: node 7 left";
  EXPECT_EQ(AddAgent(7, 2), "register agent: node 7: there are 1024 nodes already");
}

TEST_F(ClusterBounds, ANodeThatIsSilentForAMomentMakesNoRoom) {
  Fill();
  Leave(9);
  PassForOthers({9}, 500);
  EXPECT_NE(AddAgent(kMaxNodes + 1), "");
}

TEST_F(ClusterBounds, ANodeWhoseWorkerMayLiveMakesNoRoom) {
  Fill(kMaxNodes - 1);
  ASSERT_EQ(AddWorker(kMaxNodes), "");
  Leave(kMaxNodes);
  PassForOthers({kMaxNodes});
  EXPECT_NE(AddAgent(kMaxNodes + 1), "") << "its agent never was there to say that it ended";
  ASSERT_EQ(AddAgent(kMaxNodes), "");
  Leave(kMaxNodes);
  PassForOthers({kMaxNodes});
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "");
}

TEST_F(ClusterBounds, ANodeWhoseWorkerOfBeforeARestartStaysAwayMakesRoomLikeASilentOne) {
  ASSERT_EQ(AddAgent(1), "");
  ASSERT_EQ(AddWorker(1), "");
  rig.Restart();
  Fill();
  Leave(1);
  EXPECT_NE(AddAgent(kMaxNodes + 1), "");
  PassForOthers({1});
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "");
}

TEST_F(ClusterBounds, ANodeMakesRoomThoughAnotherOneHasAWorker) {
  Fill();
  ASSERT_EQ(AddWorker(9), "");
  Leave(8);
  PassForOthers({8});
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "");
}

TEST_F(ClusterBounds, ANodeMakesNoRoomBeforeNobodyCanWriteUnderItsLeases) {
  constexpr PeerId kTrainer = CoreRig::kTrainer0;
  Fill();
  ASSERT_EQ(AddWorker(9), "");
  const JobId job = rig.Submit("key", "stream");
  rig.Finish(WorkerOf(9), rig.Granted().at(0), {}, {},
             R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":4,"global_batch":4,)"
             R"("tail":"keep","world_size":1,"shard_patches":4,"numerics":"cpu"}})");
  rig.Join(kTrainer, Role::kOperator, "ops");
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.world_size = 1;
  attach.trainer_incarnation = 1;
  attach.endpoint.host_identity = NameOf(9);
  attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
  rig.Tell(kTrainer, attach);
  ASSERT_EQ(rig.Shards().size(), 1u);
  Leave(9);
  PassForOthers({9});
  const auto* fence = rig.FindFor<protocol::FenceShard>(kTrainer);
  ASSERT_NE(fence, nullptr);
  protocol::ShardFenced fenced;
  fenced.stream = job;
  fenced.lease = fence->lease;
  fenced.shard = fence->shard;
  fenced.row = {0, 1, protocol::SlotState::kFilling, 0, 0, {}};
  EXPECT_NE(AddAgent(kMaxNodes + 1), "");
  rig.Tell(kTrainer, fenced);
  EXPECT_EQ(AddAgent(kMaxNodes + 1), "");
}

TEST_F(ClusterBounds, AProcessThatWasDeclaredDeadStaysOutThoughItsNodeWasForgotten) {
  Fill();
  ASSERT_EQ(AddWorker(9), "");
  Leave(8);
  PassForOthers({8}, 500);
  Leave(9);
  PassForOthers({8, 9});
  ASSERT_EQ(AddAgent(kMaxNodes + 1), "");
  ASSERT_EQ(AddAgent(kMaxNodes + 2), "") << "node 9 was to make room";
  Leave(kMaxNodes + 1);
  PassForOthers({8, 9});
  ASSERT_EQ(AddAgent(9, 2), "");
  rig.Tell(WorkerOf(9), protocol::Heartbeat{});
  rig.Join(WorkerOf(9), Role::kWorker, NameOf(9));
  rig.Tell(WorkerOf(9), WorkerHello(9));
  EXPECT_EQ(Refusal(absl::StatusCode::kAborted), "register worker: this process was declared dead");
}

TEST_F(ClusterBounds, WorkersOfAnotherNodeTakeThePlacesOfThoseThatMadeRoom) {
  Fill();
  for (std::size_t index = 0; index < 3; ++index) ASSERT_EQ(AddWorker(9, index), "");
  EXPECT_EQ(rig.core().gauges().workers, 3u);
  rig.Leave(AgentOf(9));
  PassForOthers({9});
  ASSERT_EQ(AddAgent(kMaxNodes + 1), "");
  EXPECT_EQ(rig.core().gauges().workers, 0u);
  ASSERT_EQ(AddWorker(kMaxNodes + 1), "");
  EXPECT_EQ(rig.core().gauges().workers, 1u);
  rig.Tell(WorkerOf(9), protocol::RenewLeases{});
  EXPECT_EQ(Refusal(absl::StatusCode::kFailedPrecondition),
            "receive message: register the worker first");
  rig.Tell(AgentOf(9), protocol::Heartbeat{});
  ASSERT_NE(rig.Submit("key"), 0u);
  ASSERT_EQ(rig.Granted().size(), 1u);
  rig.Finish(WorkerOf(kMaxNodes + 1), rig.Granted()[0]);
  EXPECT_NE(rig.Find<protocol::TasksCommitted>(), nullptr);
}

TEST_F(ClusterBounds, NothingIsKeptOfTheMachinesThatANodeWasOn) {
  ASSERT_EQ(AddAgent(1), "");
  Leave(1);
  protocol::RegisterAgent moved = AgentHello(1, 2);
  moved.host_identity = "another machine";
  rig.Join(AgentOf(1), Role::kWorker, NameOf(1));
  rig.Tell(AgentOf(1), moved);
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(ClusterBounds, WhatAnAgentSaysOfItsNodeIsBounded) {
  const auto refusal = [this](const protocol::RegisterAgent& hello) {
    rig.Join(AgentOf(1), Role::kWorker, NameOf(1));
    rig.Tell(AgentOf(1), hello);
    return Refusal(absl::StatusCode::kInvalidArgument);
  };
  protocol::RegisterAgent named = AgentHello(1);
  named.host_name.assign(kMaxNodeTextBytes - named.host_identity.size(), 'h');
  EXPECT_EQ(refusal(named), "");
  named.host_name += 'h';
  EXPECT_EQ(refusal(named),
            "register agent: node 1: its host and GPUs take 8193 bytes, more than 8192");
  protocol::RegisterAgent many = AgentHello(1);
  many.gpus.resize(kMaxNodeTextBytes / sizeof(protocol::Gpu) + 1);
  EXPECT_NE(refusal(many), "");
  many.gpus.resize(16);
  for (protocol::Gpu& gpu : many.gpus) gpu = {std::string(40, 'u'), std::string(40, 'n'), 1};
  EXPECT_EQ(refusal(many), "");
  many.gpus[3].uuid.assign(kMaxNodeTextBytes, 'u');
  EXPECT_NE(refusal(many), "");
  many.gpus[3].uuid.clear();
  many.gpus[3].name.assign(kMaxNodeTextBytes, 'n');
  EXPECT_NE(refusal(many), "");
}

TEST_F(ClusterBounds, TheVersionsOfAWorkersCodeAreBounded) {
  protocol::RegisterWorker hello = WorkerHello(1);
  hello.byte_versions.assign(kMaxNameBytes, 'v');
  rig.Join(WorkerOf(1), Role::kWorker, NameOf(1));
  rig.Tell(WorkerOf(1), hello);
  EXPECT_EQ(Refusal(), "");
  hello.byte_versions += 'v';
  rig.Tell(WorkerOf(1), hello);
  EXPECT_EQ(Refusal(absl::StatusCode::kInvalidArgument),
            "register worker: node 1: the versions of its code take 257 bytes, more than 256");
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
