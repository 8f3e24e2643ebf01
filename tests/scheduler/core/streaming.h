// A stream job with one trainer, and a node with one worker, as the core sees them.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {

/// One batch of 8 patches in shards of 4.
inline constexpr char kOneBatchPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":8,"global_batch":8,"tail":"keep",)"
    R"("world_size":1,"shard_patches":4,"numerics":"cpu"}})";
/// Batches of 8 patches in shards of 4; 20 patches an epoch: 8, 8, 4.
inline constexpr char kPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":20,"global_batch":8,"tail":"keep",)"
    R"("world_size":1,"shard_patches":4,"numerics":"cpu"}})";

class Streaming : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key", "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kPlan);
    rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  }
  void Attach(std::uint64_t incarnation = 5, std::uint32_t slots = 2,
              const std::vector<std::int64_t>& holders = {}) {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.trainer_incarnation = incarnation;
    attach.endpoint.host_identity = "host";
    for (std::uint32_t i = 0; i < slots; ++i)
      attach.slots.push_back({i, 1, protocol::SlotState::kFree, 0, 0, {}});
    attach.holders = holders;
    rig.Tell(CoreRig::kTrainer0, attach);
  }
  void Count(const protocol::ShardLease& lease) {
    protocol::ShardsCounted counted;
    counted.stream = job;
    counted.items.push_back({lease.lease, lease.shard});
    rig.Tell(CoreRig::kTrainer0, counted);
  }
  void Return(const protocol::ShardLease& lease, absl::StatusCode code = absl::StatusCode::kOk,
              std::uint32_t worker = 0) {
    protocol::ShardsReturned returned;
    returned.items.push_back({lease.lease, job, lease.shard, {static_cast<int>(code), "why"}, {}});
    rig.Tell(CoreRig::kWorker0 + worker, returned);
  }
  void Fenced(const protocol::FenceShard& fence, std::uint32_t slot, std::uint64_t generation = 1) {
    protocol::ShardFenced fenced;
    fenced.stream = job;
    fenced.lease = fence.lease;
    fenced.shard = fence.shard;
    fenced.row = {
        slot, generation, protocol::SlotState::kFilling, fence.shard.epoch, fence.shard.batch, {}};
    rig.Tell(CoreRig::kTrainer0, fenced);
  }
  /// Two workers each make a shard of the first batch. One ends, the other delivers. Returns the
  /// FenceShard that the trainer receives for the lost shard.
  protocol::FenceShard LoseOneOfTwoWorkers() {
    rig.AddWorker(1);
    Attach(5, 1);
    const auto shards = rig.Shards();
    rig.Exited(0, 100);
    const protocol::FenceShard fence = *rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
    Return(shards[0].shard == fence.shard ? shards[1] : shards[0], absl::StatusCode::kOk, 1);
    return fence;
  }
  CoreRig rig;
  JobId job = 0;
};

}  // namespace patchbay::scheduler
