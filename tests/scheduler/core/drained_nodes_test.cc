// Nodes that an operator drains: they finish what they run, and get nothing until they are resumed.
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "scheduler/state/job_table.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::ChangeNode;
using protocol::NodeChange;
using protocol::TaskLease;

class DrainedNodes : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent(1);
    rig.AddWorker();
  }
  ~DrainedNodes() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  /// The refusal; "" when the node was changed.
  std::string Change(NodeChange change, const std::string& node = "node",
                     const std::string& reason = "new disk", PeerId peer = CoreRig::kOps) {
    rig.Tell(peer, ChangeNode{node, change, reason});
    if (rig.Find<protocol::NodeChanged>() != nullptr) return "";
    const auto* failed = rig.Find<protocol::RequestFailed>();
    return failed == nullptr ? "no answer" : TextOf(failed->outcome);
  }
  protocol::NodeRow Row() {
    rig.Tell(CoreRig::kOps, protocol::DescribeCluster{});
    const auto& nodes = rig.Find<protocol::ClusterDescribed>()->nodes;
    return nodes.empty() ? protocol::NodeRow{} : nodes.front();
  }
  /// A worker that holds several tasks of one job.
  std::vector<TaskLease> FillQueue() {
    rig.Submit("measured");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0));
    rig.Submit("many");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {Spec("root"), Spec("root"), Spec("root")});
    return rig.Granted();
  }

  CoreRig rig;
};

TEST_F(DrainedNodes, AreShownWithWhoDrainedThemAndWhy) {
  EXPECT_EQ(Row().state, "up");
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  const protocol::NodeRow row = Row();
  EXPECT_EQ(row.state, "drained");
  EXPECT_EQ(row.drained_by, "ops");
  EXPECT_EQ(row.drain_reason, "new disk");
  EXPECT_EQ(row.workers, 1u) << "its workers stay";
}

TEST_F(DrainedNodes, GiveBackAtOnceWhatHasNotStartedAndFinishWhatRuns) {
  const auto held = FillQueue();
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  ASSERT_NE(rig.Find<protocol::LeasesRevoked>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>()->leases,
            (std::vector{held[1].lease, held[2].lease}));
  EXPECT_EQ(Row().state, "draining");
  rig.Finish(CoreRig::kWorker0, held[0]);
  EXPECT_EQ(rig.Row(held[0].task.job).tasks_done, 2u);
  EXPECT_TRUE(rig.Granted().empty());
  EXPECT_EQ(Row().state, "drained");
  EXPECT_EQ(Change(NodeChange::kResume), "");
  EXPECT_EQ(rig.Granted().size(), 2u);
}

TEST_F(DrainedNodes, GetNothingAfterTheirAgentOrTheSchedulerStartedAnew) {
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  rig.AddAgent(1, 2);
  EXPECT_EQ(Row().state, "drained") << "a new agent changes nothing";
  rig.Submit("job");
  EXPECT_TRUE(rig.Granted().empty());
  const std::string snapshot = rig.core().EncodeSnapshot();
  JobTable table;
  ASSERT_TRUE(table.Decode(snapshot).ok());
  EXPECT_EQ(table.drained_nodes().at("node").reason, "new disk");
  rig.Restart();
  EXPECT_EQ(Row().state, "away") << "it is not back, and still listed";
  EXPECT_EQ(Row().drained_by, "ops");
  rig.AddAgent(1);
  rig.AddWorker(0, 300);
  rig.Pass(5000, {CoreRig::kAgent, CoreRig::kWorker0});
  EXPECT_TRUE(rig.Granted().empty());
  EXPECT_EQ(Change(NodeChange::kResume), "");
  EXPECT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(Row().drained_by, "");
}

TEST_F(DrainedNodes, ArePlannedForByOthers) {
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  rig.Submit("stream", "stream");
  EXPECT_TRUE(rig.Granted().empty()) << "planning is work too";
}

TEST_F(DrainedNodes, ChangesAskedTwiceAreOne) {
  EXPECT_EQ(Change(NodeChange::kResume), "");
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  const std::size_t records = rig.disk().size();
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  EXPECT_EQ(rig.disk().size(), records);
  EXPECT_EQ(Change(NodeChange::kDrain, "node", "another reason"), "");
  EXPECT_EQ(rig.disk().size(), records + 1);
}

TEST_F(DrainedNodes, RefusalsNameTheNodeAndTheLimit) {
  EXPECT_NE(Change(NodeChange::kDrain, "gone").find("gone: no such node"), std::string::npos);
  EXPECT_NE(Change(NodeChange::kResume, "gone").find("gone: no such node"), std::string::npos);
  const std::string longer(kMaxNameBytes + 1, 'x');
  EXPECT_NE(Change(NodeChange::kDrain, "node", longer).find("longer than 256"), std::string::npos);
  rig.Join(70, Role::kSubmitter, "ann");
  EXPECT_NE(Change(NodeChange::kDrain, "node", "", 70), "");
  EXPECT_EQ(Row().state, "up");
}

TEST_F(DrainedNodes, AndOthersHaveALabelThatIsKept) {
  EXPECT_EQ(Change(NodeChange::kLabel, "node", "rack 7"), "");
  EXPECT_EQ(Row().label, "rack 7");
  EXPECT_EQ(Row().state, "up") << "it is for people";
  EXPECT_EQ(Change(NodeChange::kDrain), "");
  EXPECT_EQ(Row().label, "rack 7");
  EXPECT_EQ(Change(NodeChange::kLabel, "node", "rack 8"), "");
  EXPECT_EQ(Row().drain_reason, "new disk");
  JobTable table;
  ASSERT_TRUE(table.Decode(rig.core().EncodeSnapshot()).ok());
  EXPECT_EQ(table.node_labels().at("node"), "rack 8");
  rig.Restart();
  EXPECT_EQ(Row().label, "rack 8");
  EXPECT_EQ(Change(NodeChange::kResume), "");
  rig.AddAgent(1);
  EXPECT_EQ(Row().label, "rack 8");
  EXPECT_EQ(Change(NodeChange::kLabel, "node", ""), "");
  EXPECT_EQ(Row().label, "");
  rig.Join(70, Role::kSubmitter, "ann");
  EXPECT_NE(Change(NodeChange::kLabel, "node", "hers", 70), "");
  EXPECT_NE(Change(NodeChange::kLabel, "gone", "none").find("gone: no such node"),
            std::string::npos);
}

class DrainedStream : public Streaming {};

TEST_F(DrainedStream, FinishesTheShardsThatItsWorkersHaveAndWaits) {
  Attach();
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kDrain, ""});
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr);
  for (const auto& shard : shards) {
    Return(shard);
    Count(shard);
    EXPECT_TRUE(rig.Shards().empty());
  }
  rig.Pass(40'000, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  EXPECT_EQ(rig.Row(job).state, protocol::JobState::kRunning);
  rig.Tell(CoreRig::kOps, ChangeNode{"node", NodeChange::kResume, ""});
  EXPECT_EQ(rig.Shards().size(), 2u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
