// The cluster as `status`, `top` and the dashboard show it.
#include <algorithm>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

class DescribedCluster : public Streaming {
 protected:
  protocol::ClusterDescribed SeenBy(PeerId peer) {
    rig.Tell(peer, protocol::DescribeCluster{});
    const auto* described = rig.FindFor<protocol::ClusterDescribed>(peer);
    EXPECT_NE(described, nullptr);
    return described == nullptr ? protocol::ClusterDescribed() : *described;
  }
};

TEST_F(DescribedCluster, HasOpenStreamsThoughManyJobsAreNewer) {
  for (std::size_t i = 0; i < kMaxJobsDescribed + 5; ++i) rig.Submit(StrCat("more", i));
  const auto jobs = SeenBy(CoreRig::kOps).jobs;
  ASSERT_EQ(jobs.size(), kMaxJobsDescribed + 1);
  EXPECT_EQ(jobs.back().job, job);
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end(), [](const auto& left, const auto& right) {
    return left.job > right.job;
  }));
  rig.Join(kStranger, Role::kSubmitter, "somebody else");
  EXPECT_TRUE(SeenBy(kStranger).jobs.empty());
}

TEST_F(DescribedCluster, TellsTheCourseOfAStream) {
  Attach();
  const protocol::ShardLease lease = rig.Shards().at(0);
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0};
  rig.Pass(1'000, alive);
  protocol::ShardsReturned returned;
  returned.items.push_back({lease.lease, job, lease.shard, {}, {}, {10, 40, 20, 0}});
  rig.Tell(CoreRig::kWorker0, returned);
  Count(lease);
  rig.Pass(1'000, alive);
  const protocol::StreamCourse course = SeenBy(CoreRig::kOps).jobs.at(0).course;
  EXPECT_GT(course.patches_per_ks, 0u);
  EXPECT_GT(course.stalled, 900u) << "no batch is whole";
  EXPECT_EQ(course.stage, "decode");
  EXPECT_EQ(course.node, "node");
  ASSERT_EQ(course.hour.size(), 5u);
  EXPECT_GT(course.hour[1], course.hour[0]);
}

TEST_F(DescribedCluster, NamesFailuresToThoseWhoMaySeeTheJob) {
  EXPECT_TRUE(SeenBy(CoreRig::kOps).failures.empty());
  const JobId failing = rig.Submit("fails");
  const auto tasks = rig.Granted();
  ASSERT_EQ(tasks.size(), 1u);
  rig.Finish(CoreRig::kWorker0, tasks[0], {}, Failure(absl::StatusCode::kDataLoss));
  const auto failures = SeenBy(CoreRig::kOps).failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].job, failing);
  EXPECT_EQ(failures[0].text, "task 0 failed");
  EXPECT_EQ(failures[0].outcome, Failure(absl::StatusCode::kDataLoss));
  rig.Join(kStranger, Role::kSubmitter, "somebody else");
  EXPECT_TRUE(SeenBy(kStranger).failures.empty());
}

}  // namespace
}  // namespace patchbay::scheduler
