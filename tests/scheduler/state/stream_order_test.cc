// The order of streams that want shards.
#include "scheduler/state/stream_order.h"

#include <vector>

#include <gtest/gtest.h>

namespace patchbay::scheduler {
namespace {

class StreamOrderOf : public testing::Test {
 protected:
  Stream& Add(JobId job, const std::string& user) {
    Stream& stream = streams[job];
    stream.job = job;
    stream.account = fair.Of("", user);
    stream.trainers[0].pending.insert({Position{0, 0}, 0});
    order.Refresh(job, &stream);
    return stream;
  }
  std::vector<JobId> Jobs() {
    std::vector<JobId> jobs;
    order.AnyInOrder([&](const WantingStream& one) {
      jobs.push_back(one.stream->job);
      return false;
    });
    return jobs;
  }
  FairShare fair;
  StreamOrder order{fair};
  std::map<JobId, Stream> streams;
};

TEST_F(StreamOrderOf, UsersGoBySharesAndTheirStreamsByPriorityThenLeases) {
  Stream& first = Add(1, "ann");
  Stream& second = Add(2, "ann");
  Add(3, "bob");
  fair.Grant(first.account, 1'000);
  EXPECT_EQ(Jobs(), (std::vector<JobId>{3, 1, 2}));
  first.leases = 1;
  order.Refresh(1, &first);
  EXPECT_EQ(Jobs(), (std::vector<JobId>{3, 2, 1}));
  first.priority = 5;
  order.Refresh(1, &first);
  EXPECT_EQ(Jobs(), (std::vector<JobId>{3, 1, 2}));
  second.account = fair.Of("", "eve");
  order.Refresh(2, &second);
  EXPECT_EQ(Jobs().back(), 1u);
  EXPECT_TRUE(fair.IsSound());
}

TEST_F(StreamOrderOf, OnlyStreamsWithShardsToMakeAreInIt) {
  Stream& held = Add(1, "ann");
  Stream& silent = Add(2, "ann");
  Stream& full = Add(3, "bob");
  Add(4, "eve");
  held.on_hold = true;
  silent.trainers[0].state = TrainerState::kSuspended;
  full.trainers[0].pending.clear();
  for (const JobId job : {1u, 2u, 3u}) order.Refresh(job, &streams[job]);
  EXPECT_EQ(Jobs(), (std::vector<JobId>{4}));
  order.Refresh(4, nullptr);
  EXPECT_TRUE(order.empty());
  EXPECT_FALSE(fair.AnyInOrder([](AccountId) { return true; }, WorkKind::kShards));
}

TEST_F(StreamOrderOf, AStreamThatWasRefusedByItsCapIsOfferedWorkersOnceItMayHaveMore) {
  model::TeamPolicy policy;
  policy.teams["path"].most.cpu_millis = 1'000;
  fair.SetPolicy(policy);
  Stream& stream = streams[1];
  stream.job = 1;
  stream.account = fair.Of("path", "ann");
  stream.trainers[0].pending.insert({Position{0, 0}, 0});
  fair.Hold(stream.account, {{1'000}, {1'000}, {1'000}});
  order.Refresh(1, &stream);
  order.AnyInOrder([](WantingStream& one) { return one.refused = one.capped = true; });
  const auto refused = [&] {
    order.Refresh(1, &stream);
    return order.AnyInOrder([](const WantingStream& one) { return one.refused; });
  };
  EXPECT_TRUE(refused());
  fair.Release(stream.account, {1'000}, {1'000});
  EXPECT_FALSE(refused());
  order.AnyInOrder([](WantingStream& one) { return one.refused = true; });
  EXPECT_TRUE(refused());
  order.ForgetRefusals();
  EXPECT_FALSE(refused());
}

}  // namespace
}  // namespace patchbay::scheduler
