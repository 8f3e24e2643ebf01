// A restarted scheduler waits only for live processes that have a ring mapped.
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::SlotState;

/// Batches of 8 patches in shards of 4.
constexpr char kLongPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":800,"global_batch":8,)"
    R"("tail":"keep","world_size":1,"shard_patches":4,"numerics":"cpu"}})";
constexpr PeerId kTrainer = CoreRig::kTrainer0, kWorker = CoreRig::kWorker0;
constexpr PeerId kFarAgent = 3, kFarWorker = 20;

class Recovering : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = PlanStream("key");
    rig.Join(kTrainer, Role::kOperator, "ops");
  }
  JobId PlanStream(const std::string& key) {
    const JobId stream = rig.Submit(key, "stream");
    rig.Finish(kWorker, rig.Granted().at(0), {}, {}, kLongPlan);
    return stream;
  }
  /// With one slot and these processes that have the ring mapped.
  void Attach(std::vector<std::int64_t> holders = {}) {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.endpoint.host_identity = "host";
    attach.endpoint.remote_address = remote;
    attach.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
    attach.holders = std::move(holders);
    rig.Tell(kTrainer, attach);
  }
  /// Answers the fences of shards that are unknown after a restart. Returns the shards leased then.
  std::vector<protocol::ShardLease> FenceUnknown() {
    std::vector<protocol::FenceShard> fences;
    for (const SendAction& send : rig.sent()) {
      const auto* fence = std::get_if<protocol::FenceShard>(&send.body);
      if (fence != nullptr) fences.push_back(*fence);
    }
    std::vector<protocol::ShardLease> leased;
    for (const protocol::FenceShard& fence : fences) {
      Fenced(fence);
      for (const auto& shard : rig.Shards()) leased.push_back(shard);
    }
    return leased;
  }
  void Fenced(const protocol::FenceShard& fence) {
    protocol::ShardFenced fenced;
    fenced.stream = job;
    fenced.lease = fence.lease;
    fenced.shard = fence.shard;
    fenced.row = {0, 1, SlotState::kFilling, fence.shard.epoch, fence.shard.batch, {}};
    rig.Tell(kTrainer, fenced);
  }
  void Restart() {
    rig.Restart();
    rig.AddAgent();
    rig.Join(kTrainer, Role::kOperator, "ops");
  }
  /// A second node, on that host, with one worker.
  void AddFarNode(const std::string& host, std::uint32_t cpus = 4) {
    rig.Join(kFarAgent, Role::kWorker, "far");
    protocol::RegisterAgent agent;
    agent.node = "far";
    agent.host_identity = host;
    agent.cpus = cpus;
    agent.memory_bytes = 1 << 20;
    agent.agent_incarnation = 9;
    rig.Tell(kFarAgent, agent);
    AddFarWorker(host);
  }
  void AddFarWorker(const std::string& host) {
    rig.Join(kFarWorker, Role::kWorker, "far");
    protocol::RegisterWorker worker;
    worker.node = "far";
    worker.agent_incarnation = 9;
    worker.worker_incarnation = 900;
    worker.pid = 2000;
    worker.capacity = {1000, 0, 1 << 20};
    worker.host_identity = host;
    worker.held = held;
    rig.Tell(kFarWorker, worker);
  }
  std::string WaitsFor() { return rig.Row(job).waits_for; }
  std::string Logged() {
    rig.Tell(CoreRig::kOps, protocol::FetchLogs{job, 0});
    std::string text;
    for (const auto& line : rig.Find<protocol::LogsFetched>()->lines) text += line.text + "\n";
    return text;
  }
  std::string StateOfNode(const std::string& name) {
    rig.Tell(CoreRig::kOps, protocol::DescribeCluster{});
    for (const auto& node : rig.Find<protocol::ClusterDescribed>()->nodes) {
      if (node.node == name) return node.state;
    }
    return "";
  }

  CoreRig rig;
  JobId job = 0;
  std::string remote;
  std::vector<protocol::HeldLease> held;  ///< by the far worker
};

TEST_F(Recovering, ARingThatNobodyHasMappedIsGrantedThoughAnotherNodeOfTheHostIsGone) {
  AddFarNode("host");
  Restart();
  rig.AddWorker();
  job = PlanStream("made after the restart");
  Attach();
  EXPECT_EQ(rig.Shards().size(), 2u);
}

TEST_F(Recovering, ARingOfBeforeIsGrantedAtOnceWhereNobodyThatHasItIsLeft) {
  AddFarNode("host");
  Attach();
  Restart();
  rig.AddWorker();
  Attach({1000});  // the worker that is back
  EXPECT_EQ(FenceUnknown().size(), 2u);
}

TEST_F(Recovering, ALivingProcessThatHasTheRingAndIsNotBackBlocksItUntilItEnds) {
  AddFarNode("host");
  Attach();
  Restart();
  rig.AddWorker();
  Attach({1000, 2000});
  const std::vector<PeerId> alive = {CoreRig::kAgent, kWorker, kTrainer};
  rig.Pass(100'000, alive);
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr);
  Attach({1000});  // its end is the kernel's to say, and the trainer's to repeat
  EXPECT_EQ(FenceUnknown().size(), 2u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Recovering, WhomAStreamWaitsForIsSaidByNodeAndProcess) {
  AddFarNode("host");
  Attach();
  Restart();
  rig.AddWorker();
  Attach({1000, 2000});
  rig.Pass(1'500, {CoreRig::kAgent, kWorker, kTrainer});
  EXPECT_NE(WaitsFor().find("worker process 2000 of node far"), std::string::npos) << WaitsFor();
  EXPECT_NE(Logged().find("worker process 2000 of node far"), std::string::npos) << Logged();
  EXPECT_EQ(StateOfNode("far"), "away");
  Attach({1000});
  rig.Pass(200, {CoreRig::kAgent, kWorker, kTrainer});
  EXPECT_EQ(WaitsFor(), "");
}

TEST_F(Recovering, AProcessThatIsBackBlocksTheRingUntilItDroppedWhatItHeld) {
  Attach();
  const auto before = rig.Shards();
  ASSERT_EQ(before.size(), 2u);
  Restart();
  protocol::HeldLease held;
  held.lease = before[0].lease;
  held.is_shard = true;
  held.stream = job;
  held.shard = before[0].shard;
  rig.AddWorker(0, 100, {held});
  ASSERT_NE(rig.FindFor<protocol::LeasesRevoked>(kWorker), nullptr);
  Attach({1000});
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr);
  EXPECT_TRUE(rig.Shards().empty());
  protocol::ShardsReturned returned;
  returned.items.push_back({before[0].lease, job, before[0].shard, {1, "cancelled"}});
  rig.Tell(kWorker, returned);
  rig.Pass(200, {CoreRig::kAgent, kWorker, kTrainer});
  EXPECT_EQ(FenceUnknown().size(), 2u);
}

TEST_F(Recovering, AProcessOfAnotherHostWithTheSameNumberIsAnother) {
  AddFarNode("other host");
  Attach();
  Restart();
  AddFarNode("other host");
  Attach({2000});
  EXPECT_TRUE(FenceUnknown().empty()) << "the one that is back has the number elsewhere";
}

TEST_F(Recovering, TheSameSchedulerIsToldOfHoldersAndWaitsForNone) {
  Attach();
  Attach({1000, 4711});
  EXPECT_EQ(WaitsFor(), "");
  for (const auto& lease : rig.Shards()) EXPECT_EQ(lease.stream, job);
  EXPECT_EQ(rig.core().gauges().leases, 2u);
}

TEST_F(Recovering, MoreHoldersThanARingAdmitsAreRefused) {
  Attach(std::vector<std::int64_t>(kMaxRingHolders + 1, 7));
  const auto* refused = rig.Find<protocol::RequestFailed>();
  ASSERT_NE(refused, nullptr);
  EXPECT_NE(TextOf(refused->outcome).find("too many processes"), std::string::npos);
  Attach(std::vector<std::int64_t>(kMaxRingHolders, 7));
  EXPECT_EQ(rig.Find<protocol::RequestFailed>(), nullptr);
}

TEST_F(Recovering, AWorkerThatRegistersBeforeItsAgentSaysItsHost) {
  Attach();
  rig.Restart();
  rig.Join(kTrainer, Role::kOperator, "ops");
  rig.Join(kWorker, Role::kWorker, "node");
  protocol::RegisterWorker hello;
  hello.node = "node";
  hello.agent_incarnation = 1;
  hello.worker_incarnation = 100;
  hello.pid = 1000;
  hello.capacity = {1000, 0, 1 << 20};
  hello.host_identity = "host";
  rig.Tell(kWorker, hello);
  Attach({1000});
  EXPECT_NE(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr);
  hello.host_identity.assign(kMaxNameBytes + 1, 'h');
  rig.Tell(kWorker, hello);
  EXPECT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
}

TEST_F(Recovering, TasksOfBeforeWaitThreeSecondsForTheirHolders) {
  AddFarNode("other host");
  const JobId waiting = rig.Submit("task");
  Restart();
  rig.AddWorker();
  const std::vector<PeerId> alive = {CoreRig::kAgent, kWorker};
  rig.Pass(2'900, alive);
  EXPECT_TRUE(rig.Granted().empty());
  rig.Pass(200, alive);
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, waiting);
}

// ---------------------------------------------------------------- nodes that come back late

class OnlyTheFarNodeMakes : public Recovering {
 protected:
  void SetUp() override {
    remote = "tls://10.0.0.1:1/5";
    rig.AddAgent(0);
    AddFarNode("other host");
    job = rig.Submit("key", "stream");
    rig.Finish(kFarWorker, rig.Granted().at(0), {}, {}, kLongPlan);
    rig.Join(kTrainer, Role::kOperator, "ops");
    Attach();
  }
  /// The far node is cut off as the scheduler restarts.
  void RestartWithoutIt() {
    rig.Restart();
    rig.AddAgent(0);
    rig.Join(kTrainer, Role::kOperator, "ops");
    Attach();
    FenceUnknown();
  }
  const std::vector<PeerId> alive = {CoreRig::kAgent, kTrainer};
};

TEST_F(OnlyTheFarNodeMakes, ItsReturnAfterAMinuteFindsTheStreamWaiting) {
  RestartWithoutIt();
  rig.Pass(59'000, alive);
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  EXPECT_NE(WaitsFor().find("node far is not back"), std::string::npos) << WaitsFor();
  AddFarNode("other host");
  EXPECT_EQ(rig.Shards().size(), 2u);
  rig.Pass(200, alive);
  EXPECT_EQ(WaitsFor(), "");
}

TEST_F(OnlyTheFarNodeMakes, ItsAbsenceEndsTheStreamByItsName) {
  RestartWithoutIt();
  rig.Pass(95'000, alive);
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
  EXPECT_NE(TextOf(rig.Row(job).failed.at(0).outcome).find("node far has not come back"),
            std::string::npos);
  EXPECT_EQ(StateOfNode("far"), "");
  rig.Restart();
  rig.AddAgent(0);
  EXPECT_EQ(StateOfNode("far"), "") << "the journal has forgotten its processes";
}

TEST_F(OnlyTheFarNodeMakes, ANewStreamWaitsForItToo) {
  rig.Restart();
  rig.AddAgent(0);
  EXPECT_EQ(StateOfNode("far"), "away");
  AddFarNode("other host");
  EXPECT_EQ(StateOfNode("far"), "up");
}

// ---------------------------------------------------------------- nodes that vanish

class Vanishing : public Recovering {
 protected:
  void SetUp() override {
    Recovering::SetUp();
    remote = "tls://10.0.0.1:1/5";
    AddFarNode("other host");
  }
  const std::vector<PeerId> alive = {CoreRig::kAgent, kWorker, kTrainer};
};

TEST_F(Vanishing, ShardsOfALostWorkerAreFencedAndOnesOfAConnectedOneAreNot) {
  rig.Exited(0, 100, SIGTERM);  // only the far node is left
  Attach();
  ASSERT_EQ(rig.Shards().size(), 2u);
  rig.Pass(4'000, {CoreRig::kAgent, kTrainer});
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr) << "silent, but connected";
  rig.Leave(kFarWorker);
  rig.Pass(100, {CoreRig::kAgent, kTrainer});
  const auto* fence = rig.FindFor<protocol::FenceShard>(kTrainer);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->worker_pid, 0) << "the trainer ends its transfers by itself";
  rig.AddWorker(0, 300);
  const protocol::FenceShard copy = *fence;
  rig.Pass(100, {CoreRig::kAgent, kWorker, kTrainer});
  Fenced(copy);
  EXPECT_FALSE(rig.Shards().empty());
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Vanishing, AShortCutCostsOnlyWhatWasLostOnTheWay) {
  rig.Exited(0, 100, SIGTERM);
  Attach();
  const auto leased = rig.Shards();
  ASSERT_EQ(leased.size(), 2u);
  rig.Leave(kFarWorker);
  rig.Pass(1'000, {CoreRig::kAgent, kTrainer});
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr);
  held = {{leased[0].lease, true, {}, job, leased[0].shard}};
  AddFarWorker("other host");
  rig.Pass(100, {CoreRig::kAgent, kFarWorker, kTrainer});
  const auto* fence = rig.FindFor<protocol::FenceShard>(kTrainer);
  EXPECT_EQ(fence, nullptr) << "sent when it registered, and not repeated yet";
  EXPECT_EQ(rig.core().gauges().leases, 2u);
}

TEST_F(Vanishing, AShardThatAWorkerDoesNotNameWhenItIsBackIsMadeAgain) {
  rig.Exited(0, 100, SIGTERM);
  Attach();
  const auto leased = rig.Shards();
  ASSERT_EQ(leased.size(), 2u);
  rig.Leave(kFarWorker);
  held = {{leased[0].lease, true, {}, job, leased[0].shard}};
  AddFarWorker("other host");
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(kTrainer), nullptr) << "it may be on the way to it";
  const auto* revoked = rig.FindFor<protocol::LeasesRevoked>(kFarWorker);
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->leases, std::vector{leased[1].lease});
  rig.Pass(1'000, {CoreRig::kAgent, kFarWorker, kTrainer});
  revoked = rig.FindFor<protocol::LeasesRevoked>(kFarWorker);
  ASSERT_NE(revoked, nullptr) << "a connection may have broken with the first";
  EXPECT_EQ(revoked->leases, std::vector{leased[1].lease});
  protocol::ShardsReturned returned;
  returned.items.push_back({leased[1].lease, 0, {}, {1, "cancelled"}});
  rig.Tell(kFarWorker, returned);
  const auto* fence = rig.FindFor<protocol::FenceShard>(kTrainer);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->lease, leased[1].lease);
  EXPECT_EQ(fence->worker_pid, 0) << "it says itself that it does not write";
  const protocol::FenceShard copy = *fence;
  Fenced(copy);
  ASSERT_EQ(rig.Shards().size(), 1u);
  EXPECT_EQ(rig.Shards()[0].shard, leased[1].shard);
}

TEST_F(Vanishing, ALostWorkerOfTheTrainersHostIsToDie) {
  Attach();
  rig.Leave(kWorker);
  rig.Pass(1'600, {CoreRig::kAgent, kFarWorker, kTrainer});
  EXPECT_NE(rig.FindFor<protocol::KillWorker>(CoreRig::kAgent), nullptr);
  const auto* fence = rig.FindFor<protocol::FenceShard>(kTrainer);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->worker_pid, 1000);
}

TEST_F(Vanishing, ATrainerThatIsCutOffWithItsWorkersCostsThemNothing) {
  Attach();
  rig.Leave(kWorker);
  rig.Leave(kTrainer);
  rig.Pass(2'500, {CoreRig::kAgent, kFarWorker});
  EXPECT_EQ(rig.FindFor<protocol::KillWorker>(CoreRig::kAgent), nullptr);
}

TEST_F(Vanishing, TasksOfALostWorkerRunElsewhere) {
  rig.Exited(0, 100, SIGTERM);
  const JobId planned = rig.Submit("another", "stream");
  ASSERT_EQ(rig.Granted().size(), 1u);
  rig.Leave(kFarWorker);
  rig.AddWorker(0, 300);
  rig.Pass(1'700, {CoreRig::kAgent, kWorker});
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, planned);
  EXPECT_NE(rig.FindFor<protocol::LeasesGranted>(kWorker), nullptr);
}

}  // namespace
}  // namespace patchbay::scheduler
