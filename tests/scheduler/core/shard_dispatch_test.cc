// The worker that makes a shard: turns of streams, pairs that are kept apart, suspects.
#include <deque>
#include <map>

#include <gtest/gtest.h>

#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::SlotState;

TEST_F(Streaming, FailedDeliveryBarsThatPairForAWhile) {
  rig.AddWorker(1);
  Attach(5, 1);
  const auto shards = rig.Shards();
  Return(shards[0], absl::StatusCode::kUnavailable, 0);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->worker_pid, 0) << "its worker says that it stopped";
  const protocol::FenceShard copy = *fence;
  Fenced(copy, 0);
  EXPECT_NE(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 1), nullptr);
  EXPECT_EQ(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0), nullptr);
}

TEST_F(Streaming, APairIsNotKeptApartForAWorkerThatRunsASuspectAlone) {
  rig.AddWorker(1);
  rig.Submit("batch");
  rig.Exited(0, 100);
  ASSERT_EQ(rig.Granted().size(), 1u) << "the suspect is worker 1's now";
  rig.AddWorker(0, 200);
  Attach(5, 1);
  const auto shards = rig.Shards();
  ASSERT_FALSE(shards.empty());
  Return(shards[0], absl::StatusCode::kUnavailable, 0);
  const protocol::FenceShard fence = *rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  Fenced(fence, 0);
  EXPECT_TRUE(rig.Shards().empty());
  rig.Pass(1'100, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1, CoreRig::kTrainer0});
  EXPECT_EQ(rig.Shards().size(), 1u) << "it waits for a worker that gets no shards";
}

TEST_F(Streaming, SaysWhichNodeOrWorkersDoNotAnswer) {
  const auto waits_for = [&] { return rig.Row(job).waits_for; };
  rig.Pass(1'000, {CoreRig::kAgent, CoreRig::kWorker0});
  rig.Pass(3'100, {CoreRig::kTrainer0});  // the node hangs, and its connections stay
  Attach();
  EXPECT_TRUE(rig.Shards().empty());
  rig.Pass(100, {CoreRig::kTrainer0});
  EXPECT_EQ(waits_for(), "a CPU worker: node node does not answer");
  rig.Pass(1'000, {CoreRig::kTrainer0});
  rig.Tell(CoreRig::kOps, protocol::FetchLogs{job, 0});
  EXPECT_EQ(rig.Find<protocol::LogsFetched>()->lines.back().text,
            "the stream waits for a CPU worker: node node does not answer");
  for (int i = 0; i < 10; ++i) {
    rig.Pass(100, {CoreRig::kTrainer0});
    rig.Tell(CoreRig::kAgent, protocol::Heartbeat{.silent = {0}});
  }
  EXPECT_EQ(waits_for(), "a CPU worker: none answers");
  rig.Pass(1'000, {CoreRig::kTrainer0, CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_FALSE(rig.Shards().empty());
  EXPECT_EQ(waits_for(), "");
}

/// Further streams, each with its trainer.
class Streams : public Streaming {
 protected:
  static PeerId TrainerOf(JobId stream) { return CoreRig::kTrainer0 + static_cast<PeerId>(stream); }
  JobId Open(const std::string& key, std::int32_t priority, std::uint32_t planner) {
    const JobId stream = rig.Submit(key, "stream", priority);
    rig.Finish(CoreRig::kWorker0 + planner, rig.Granted().at(0), {}, {}, kPlan);
    rig.Join(TrainerOf(stream), Role::kOperator, "ops");
    return stream;
  }
  /// The shards that this granted.
  std::vector<protocol::ShardLease> AttachTo(JobId stream, std::uint32_t slots = 2) {
    protocol::AttachTrainer attach;
    attach.stream = stream;
    attach.trainer_incarnation = 100 + stream;
    attach.endpoint.host_identity = "host";
    for (std::uint32_t i = 0; i < slots; ++i)
      attach.slots.push_back({i, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(TrainerOf(stream), attach);
    return rig.Shards();
  }
  /// The worker delivers the shard, which counts; the shards that this granted.
  std::vector<protocol::ShardLease> Make(const protocol::ShardLease& lease, PeerId trainer,
                                         std::uint32_t worker = 0) {
    protocol::ShardsReturned returned;
    returned.items.push_back({lease.lease, lease.stream, lease.shard, {}});
    rig.Tell(CoreRig::kWorker0 + worker, returned);
    std::vector<protocol::ShardLease> granted = rig.Shards();
    protocol::ShardsCounted counted;
    counted.stream = lease.stream;
    counted.items.push_back({lease.lease, lease.shard});
    rig.Tell(trainer, counted);
    const std::vector<protocol::ShardLease> more = rig.Shards();
    granted.insert(granted.end(), more.begin(), more.end());
    return granted;
  }
  /// The worker dies with both shards of the first batch of Streaming's stream, and the trainer
  /// fences them: each is to be made alone.
  void MakeSuspects() {
    Attach(5, 1);
    rig.Exited(0, 100);
    std::vector<protocol::FenceShard> fences;
    for (const SendAction& send : rig.sent()) {
      if (const auto* fence = std::get_if<protocol::FenceShard>(&send.body)) {
        fences.push_back(*fence);
      }
    }
    ASSERT_EQ(fences.size(), 2u);
    for (const auto& fence : fences) Fenced(fence, 0);
  }
};

TEST_F(Streams, OfOnePriorityTakeTurnsAtTheOneWorker) {
  std::deque<protocol::ShardLease> held;
  const auto add = [&](const std::vector<protocol::ShardLease>& granted) {
    held.insert(held.end(), granted.begin(), granted.end());
  };
  std::vector<JobId> streams;
  for (const char* key : {"a", "b", "c"}) streams.push_back(Open(key, 0, 0));
  for (const JobId stream : streams) add(AttachTo(stream));
  std::map<JobId, int> made;
  std::vector<PeerId> alive = {CoreRig::kAgent};
  for (const JobId stream : streams) alive.push_back(TrainerOf(stream));
  for (int i = 0; i < 9; ++i) {
    rig.Pass(1'000, alive);  // a worker that is fast is given more ahead
    add(rig.Shards());
    ASSERT_FALSE(held.empty());
    const protocol::ShardLease lease = held.front();
    held.pop_front();
    ++made[lease.stream];
    add(Make(lease, TrainerOf(lease.stream)));
  }
  for (const JobId stream : streams) EXPECT_GE(made[stream], 2) << stream;
}

/// On a node of one core worker 0 is idle and worker 1 makes a shard of a stream of higher
/// priority; a suspect waits for it, and then the other stream has more to make.
class SuspectShard : public Streams {
 protected:
  void SetUp() override {
    Streams::SetUp();
    rig.AddAgent(1);
    urgent = Open("urgent", 10, 0);
    MakeSuspects();
    AttachTo(urgent, 1);
    rig.AddWorker(1);
    const std::vector<protocol::ShardLease> granted = rig.Shards();
    ASSERT_EQ(granted.size(), 2u);
    rig.AddWorker(0, 200);
    EXPECT_TRUE(rig.Shards().empty()) << "there is no core for it";
    EXPECT_TRUE(Make(granted[0], TrainerOf(urgent), 1).empty());
    held = granted[1];
    protocol::AnnounceSlots more;
    more.stream = urgent;
    more.slots.push_back({1, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(TrainerOf(urgent), more);
    EXPECT_TRUE(rig.Shards().empty()) << "a suspect waits for the worker";
  }
  JobId urgent = 0;
  protocol::ShardLease held;
};

TEST_F(SuspectShard, GetsTheCoreThatItsNodesWorkersShare) {
  rig.Pass(300);
  EXPECT_TRUE(rig.Shards().empty()) << "it still waits";
  std::vector<protocol::ShardLease> granted = Make(held, TrainerOf(urgent), 1);
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].stream, job);
  granted = Make(granted[0], CoreRig::kTrainer0, 1);
  ASSERT_FALSE(granted.empty());
  EXPECT_EQ(granted[0].stream, urgent) << "nobody waits for the worker any more";
}

TEST_F(SuspectShard, KeepsAWorkerNoLongerThanItIsThere) {
  rig.Tell(CoreRig::kTrainer0, protocol::DetachTrainer{job, 0});
  rig.Pass(300);
  ASSERT_FALSE(rig.Shards().empty());
  EXPECT_EQ(rig.Shards()[0].stream, urgent);
}

TEST_F(Streams, ASuspectShardDoesNotWaitForAWorkerThatPlansWhileAnotherIsSoonEmpty) {
  const JobId urgent = Open("urgent", 10, 0), other = Open("other", 0, 0);
  MakeSuspects();
  rig.Submit("planned", "stream");
  AttachTo(urgent, 1);
  rig.AddWorker(1);
  ASSERT_EQ(rig.Granted().size(), 1u) << "it plans";
  const std::vector<protocol::ShardLease> before = rig.Shards();
  ASSERT_EQ(before.size(), 2u);
  EXPECT_TRUE(Make(before[0], TrainerOf(urgent), 1).empty()) << "a suspect waits for it";
  EXPECT_TRUE(AttachTo(other).empty());
  rig.AddWorker(2);
  const auto* granted = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 2);
  ASSERT_NE(granted, nullptr);
  ASSERT_EQ(granted->shards.size(), 1u) << "now a suspect waits for this one";
  const protocol::ShardLease first = granted->shards[0];
  EXPECT_EQ(first.stream, other);
  const std::vector<protocol::ShardLease> next = Make(first, TrainerOf(other), 2);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].stream, job);
}

TEST_F(Streams, ASuspectShardRunsBesidePlanningWhereAllPlanUntilAWorkerEndedSo) {
  const JobId urgent = Open("urgent", 10, 0);
  MakeSuspects();
  rig.Submit("planned", "stream");
  AttachTo(urgent, 1);
  rig.AddWorker(1);
  ASSERT_EQ(rig.Granted().size(), 1u) << "it plans";
  const std::vector<protocol::ShardLease> before = rig.Shards();
  ASSERT_EQ(before.size(), 2u);
  EXPECT_TRUE(Make(before[0], TrainerOf(urgent), 1).empty()) << "a suspect waits for it";
  const std::vector<protocol::ShardLease> first = Make(before[1], TrainerOf(urgent), 1);
  ASSERT_EQ(first.size(), 1u) << "one suspect, beside planning";
  EXPECT_EQ(first[0].stream, job);
  const std::vector<protocol::ShardLease> next = Make(first[0], CoreRig::kTrainer0, 1);
  ASSERT_EQ(next.size(), 1u) << "the other suspect";
  rig.Submit("also planned", "stream");
  rig.AddWorker(2);
  ASSERT_EQ(rig.Granted().size(), 1u) << "worker 2 plans";
  rig.Exited(1, 101);
  const protocol::FenceShard fence = *rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  Fenced(fence, next[0].grant.slot);
  EXPECT_TRUE(rig.Shards().empty()) << "from now on it needs an empty worker";
  rig.AddWorker(1, 200);
  const std::size_t shards = rig.Shards().size();
  EXPECT_EQ(rig.Granted().size() + shards, 1u) << "plan and shard are suspects: each runs alone";
}

TEST_F(Streaming, AWorkerThatASuspectTaskWaitsForMakesShardsAsLongAsItPlans) {
  rig.Submit("planned", "stream");
  rig.AddWorker(1);
  rig.Submit("also planned", "stream");
  const auto* granted = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 1);
  ASSERT_NE(granted, nullptr);
  const protocol::TaskLease plan = granted->tasks.at(0);
  rig.Submit("batch");
  ASSERT_NE(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0), nullptr);
  rig.Exited(0, 100);
  EXPECT_TRUE(rig.Granted().empty()) << "suspects wait for worker 1";
  Attach(5, 1);
  const std::vector<protocol::ShardLease> shards = rig.Shards();
  ASSERT_FALSE(shards.empty());
  rig.Finish(CoreRig::kWorker0 + 1, plan, {}, {}, kPlan);
  EXPECT_TRUE(rig.Granted().empty());
  for (const protocol::ShardLease& shard : shards) {
    Return(shard, absl::StatusCode::kOk, 1);
    Count(shard);
  }
  EXPECT_TRUE(rig.Shards().empty()) << "it is to be empty";
}

TEST_F(Streaming, AHungryStreamLeavesItsUserATaskASecond) {
  Attach(5, 2);
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  const JobId batch = rig.Submit("batch");
  EXPECT_TRUE(rig.Granted().empty());
  rig.Pass(1'200, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  Return(shards[0]);
  EXPECT_TRUE(rig.Shards().empty()) << "the worker is kept for the task";
  Return(shards[1]);
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, batch);
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  Count(shards[0]);
  EXPECT_GT(rig.Row(job).held_cpu_millis, 0u) << "it makes shards beside the task";
}

}  // namespace
}  // namespace patchbay::scheduler
