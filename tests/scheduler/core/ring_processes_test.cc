// A ring takes workers of so many processes, and a stream is placed within them.
#include <set>

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

constexpr PeerId kFirstWorker = 1'000, kOtherAgent = 3;
constexpr std::uint32_t kOfNode = 600, kWorkers = 2 * kOfNode;

class RingProcesses : public testing::Test {
 protected:
  void SetUp() override {
    rig.Join(kOtherAgent, Role::kWorker, "other");
    for (const char* node : {"node", "other"}) {
      protocol::RegisterAgent hello;
      hello.node = node;
      hello.host_identity = "host";
      hello.cpus = kOfNode;
      hello.agent_incarnation = 1;
      rig.Tell(hello.node == "node" ? CoreRig::kAgent : kOtherAgent, hello);
    }
    AddWorker(0);
    job = rig.Submit("stream", "stream");
    rig.Finish(
        kFirstWorker, rig.Granted().at(0), {}, {},
        R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":8192,"global_batch":2048,)"
        R"("tail":"keep","world_size":1,"shard_patches":1,"numerics":"cpu"}})");
    for (std::uint32_t i = 1; i < kWorkers; ++i) AddWorker(i);
  }
  void AddWorker(std::uint32_t i, std::uint64_t incarnation = 1'000) {
    protocol::RegisterWorker hello;
    hello.node = i < kOfNode ? "node" : "other";
    hello.index = i % kOfNode;
    hello.agent_incarnation = 1;
    hello.worker_incarnation = incarnation + i;
    hello.pid = static_cast<std::int64_t>(incarnation + i);
    hello.capacity = {1000, 0, 0};
    rig.Join(kFirstWorker + i, Role::kWorker, hello.node);
    rig.Tell(kFirstWorker + i, hello);
  }
  void Attach() {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = 5;
    attach.endpoint.host_identity = "host";
    for (std::uint32_t slot = 0; slot < 4; ++slot)
      attach.slots.push_back({slot, 1, protocol::SlotState::kFree, 0, 0, {}});
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
    rig.Tell(CoreRig::kTrainer0, attach);
  }
  /// Workers that the last call gave shards to.
  std::set<PeerId> Makers() {
    std::set<PeerId> makers;
    for (const auto& send : rig.sent()) {
      const auto* granted = std::get_if<protocol::LeasesGranted>(&send.body);
      if (granted != nullptr && !granted->shards.empty()) makers.insert(send.peer);
    }
    return makers;
  }

  CoreRig rig;
  JobId job = 0;
};

TEST_F(RingProcesses, OfAStreamAreNoMoreThanARingTakes) {
  Attach();
  const std::set<PeerId> first = Makers();
  EXPECT_EQ(first.size(), kMaxRingHolders);
  const PeerId maker = *first.begin();
  const auto index = static_cast<std::uint32_t>(maker - kFirstWorker);
  ASSERT_LT(index, kOfNode);
  rig.Tell(CoreRig::kAgent, protocol::WorkerExited{"node", index, 1'000 + index, SIGTERM});
  const std::set<PeerId> next = Makers();
  ASSERT_EQ(next.size(), 1u) << "one process has made room for one";
  EXPECT_EQ(first.count(*next.begin()), 0u);
}

}  // namespace
}  // namespace patchbay::scheduler
