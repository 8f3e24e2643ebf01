// Long tasks and lent cores: who may start them, who keeps them, and who waits for them.
#include <numeric>

#include <gtest/gtest.h>

#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// A core that nobody else is on.
constexpr Claim kWholeCore = {{1'000}, {1'000}, {1'000}};

TEST(FairShare, LongWorkStartsOnLentCoresOnlyWhenNobodyCouldWantThem) {
  FairShare fair;
  fair.SetCapacity({4'000, 0, 0});
  constexpr std::int64_t kLongUs = 1'000'001;
  const AccountId ann = fair.Of("a", "ann"), bob = fair.Of("b", "bob");
  fair.Hold(ann, kWholeCore);
  fair.Hold(ann, kWholeCore);
  fair.RunOn(ann, 2, 2'000);
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000)) << "the other never had any work";
  fair.Enqueue(bob);
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
  EXPECT_TRUE(fair.MayStart(ann, kLongUs - 1, 1'000));
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 0)) << "on cores that it has";
  EXPECT_TRUE(fair.MayStart(bob, kLongUs, 1'000)) << "of its own share";
  fair.Hold(bob, kWholeCore);
  fair.Hold(bob, kWholeCore);
  fair.Hold(bob, kWholeCore);
  EXPECT_TRUE(fair.MayStart(bob, kLongUs, 1'000)) << "three cores make shards, none runs a task";
  fair.Release(bob, {3'000}, {3'000});
  fair.Dequeue(bob);
  fair.Advance(kLendAfterMs - 1);
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
  fair.Advance(kLendAfterMs);
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000));
}

TEST(FairShare, ATeamWithLessThanACoreHasOneTask) {
  FairShare fair;
  fair.SetCapacity({2'000, 0, 0});
  model::TeamPolicy policy;
  policy.teams["a"];
  policy.teams["b"].weight_millis = 3'000;
  fair.SetPolicy(policy);
  const AccountId ann = fair.Of("a", "ann"), bob = fair.Of("b", "bob");
  fair.Enqueue(ann);
  fair.Enqueue(bob);
  constexpr std::int64_t kLongUs = 1'000'001;
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000)) << "half a core is its share";
  fair.RunOn(ann, 1, 1'000);
  EXPECT_FALSE(fair.HoldsLent(ann));
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
  EXPECT_TRUE(fair.IsOwed(ann)) << "it holds none";
  fair.RunOn(bob, 1, 1'000);
  constexpr std::int64_t kReclaimUs = 30'000'000;
  EXPECT_TRUE(fair.MayStart(bob, kReclaimUs - 1, 1'000)) << "it ends before it is handed back";
  EXPECT_FALSE(fair.MayStart(bob, kReclaimUs, 1'000));
  fair.Hold(ann, kWholeCore);
  EXPECT_FALSE(fair.IsOwed(ann));
  fair.RunOn(ann, 1, 1'000);
  EXPECT_TRUE(fair.HoldsLent(ann));
  policy.teams["b"].guaranteed.cpu_millis = 2'000;
  fair.SetPolicy(policy);
  fair.RunOn(ann, -1, -1'000);
  EXPECT_TRUE(fair.HoldsLent(ann)) << "it has no share";
}

/// A team whose tasks run on all of three cores, and one whose trainer waits for each batch.
struct Squeezed : testing::Test {
  Squeezed() {
    fair.SetCapacity({3'000, 0, 0});
    ann = fair.Of("a", "ann");
    bob = fair.Of("b", "bob");
    for (int core = 0; core < 3; ++core) {
      fair.Hold(ann, kWholeCore);
      fair.RunOn(ann, 1, 1'000);
    }
    fair.Enqueue(bob, WorkKind::kShards);
  }
  void Stall(TimeMs from, TimeMs to) {
    for (TimeMs now = from; now <= to; now += 100) {
      fair.Advance(now);
      fair.Stall(bob);
    }
  }
  bool IsSqueezed(std::uint64_t has_millis) {
    return fair.IsSqueezed(fair.TeamIdOf(bob), has_millis);
  }
  bool HasBeyond(std::uint64_t has_millis) {
    return fair.HasBeyond(fair.TeamIdOf(ann), has_millis);
  }
  static constexpr std::int64_t kLongUs = 1'000'001;
  FairShare fair;
  AccountId ann = 0, bob = 0;
};

TEST_F(Squeezed, ATeamThatStallsForASecondHasLessThanItsShare) {
  Stall(100, 1'000);
  EXPECT_FALSE(fair.AnyStalls()) << "not for a second yet";
  Stall(1'100, 1'100);
  EXPECT_TRUE(fair.AnyStalls());
  EXPECT_TRUE(IsSqueezed(1'400));
  EXPECT_FALSE(IsSqueezed(1'401)) << "nearly 1.5 of 3 cores";
  fair.Advance(1'400);
  EXPECT_FALSE(fair.AnyStalls()) << "it has its batches";
  Stall(1'500, 2'400);
  EXPECT_FALSE(fair.AnyStalls()) << "the second begins anew";
}

TEST_F(Squeezed, TheOtherKeepsItsShareToAQuarterOfACore) {
  EXPECT_TRUE(HasBeyond(1'751));
  EXPECT_FALSE(HasBeyond(1'750));
  fair.RunOn(ann, -2, -2'000);
  EXPECT_FALSE(HasBeyond(1'751)) << "its only task";
  model::TeamPolicy policy;
  policy.teams["b"].guaranteed.cpu_millis = 3'000;
  fair.SetPolicy(policy);
  EXPECT_TRUE(HasBeyond(500)) << "the other is guaranteed all there is";
}

TEST_F(Squeezed, NoLongTaskStartsBesideItsShardsForAMinute) {
  model::TeamPolicy policy;
  policy.teams["b"].guaranteed.cpu_millis = 2'500;
  fair.SetPolicy(policy);
  fair.Hold(bob, {{3'000}, {3'000}, {}});  // beside tasks
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000)) << "nobody stalls";
  Stall(100, 1'100);
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
  EXPECT_TRUE(fair.MayStart(ann, kLongUs - 1, 1'000));
  fair.Advance(1'100 + kLendAfterMs - 1);
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
  fair.Advance(1'100 + kLendAfterMs);
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000));
}

TEST_F(Squeezed, ATeamWithASmallShareHasOneTask) {
  model::TeamPolicy policy;
  policy.teams["b"].guaranteed.cpu_millis = 2'900;
  fair.SetPolicy(policy);
  fair.Hold(bob, {{3'000}, {3'000}, {}});
  for (int core = 0; core < 3; ++core) {
    fair.Release(ann, {1'000}, {0});
    fair.RunOn(ann, -1, -1'000);
  }
  Stall(100, 1'100);
  EXPECT_TRUE(fair.MayStart(ann, kLongUs, 1'000)) << "a tenth of a core is its share";
  fair.Hold(ann, kWholeCore);
  fair.RunOn(ann, 1, 1'000);
  EXPECT_FALSE(fair.MayStart(ann, kLongUs, 1'000));
}

/// Two teams with guarantees of 2 and 1 of 4 cores, and one without.
struct Lending : testing::Test {
  Lending() {
    model::TeamPolicy policy;
    policy.teams["path"].guaranteed.cpu_millis = 2'000;
    policy.teams["rad"].guaranteed.cpu_millis = 1'000;
    policy.teams["lab"];
    fair.SetPolicy(policy);
    fair.SetCapacity({4'000, 0, 0});
    path = fair.Of("path", "ann");
    rad = fair.Of("rad", "bob");
    lab = fair.Of("lab", "eve");
  }
  TeamLending Of(const std::string& team) { return fair.Lending()[team]; }
  /// Cores that nobody else is on.
  void Hold(AccountId id, std::uint64_t millis) { fair.Hold(id, {{millis}, {millis}, {millis}}); }
  void Release(AccountId id, std::uint64_t millis) { fair.Release(id, {millis}, {millis}); }
  std::uint64_t Counted() {
    const auto& counts = fair.reclaim_times().counts;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  FairShare fair;
  AccountId path = 0, rad = 0, lab = 0;
};

TEST_F(Lending, IsOfGuaranteesThatOthersHoldBeyondTheirsAndWhatIsNobodys) {
  Hold(lab, 1'000);
  EXPECT_EQ(Of("path").guaranteed_millis, 2'000u);
  EXPECT_EQ(Of("path").lent_millis + Of("rad").lent_millis, 0u) << "a core is guaranteed to none";
  EXPECT_EQ(fair.Lending().count("lab"), 0u);
  Hold(lab, 1'500);
  EXPECT_EQ(Of("lab").borrowed_millis, 1'500u);
  EXPECT_EQ(Of("path").lent_millis, 1'000u) << "each lends in proportion to what it leaves";
  EXPECT_EQ(Of("rad").lent_millis, 500u);
  Hold(rad, 1'500);
  EXPECT_EQ(Of("rad").lent_millis, 0u);
  EXPECT_EQ(Of("path").lent_millis, 2'000u);
  EXPECT_EQ(Of("rad").borrowed_millis + Of("lab").borrowed_millis, 2'000u);
  Hold(path, 2'000);
  EXPECT_EQ(Of("path").lent_millis, 0u) << "two may share a worker: more is held than there is";
  EXPECT_EQ(Of("lab").borrowed_millis, 0u);
}

TEST_F(Lending, AReclaimIsTheWaitForEachCoreOfAGuarantee) {
  fair.Advance(100);
  Hold(lab, 4'000);
  fair.Enqueue(path);
  fair.Advance(1'000);  // the event in which it asks
  fair.Advance(1'200);
  Release(lab, 1'000);
  Hold(path, 1'000);
  EXPECT_EQ(fair.reclaim_times().sum_ns, 200'000'000);
  fair.Advance(1'500);
  Release(path, 1'000);  // its own core goes to its next work
  Hold(path, 1'000);
  EXPECT_EQ(Counted(), 1u);
  fair.Advance(2'000);
  Release(lab, 1'000);
  fair.Dequeue(path);  // nothing else waits
  Hold(path, 1'000);
  EXPECT_EQ(Of("path").reclaims, 2u);
  EXPECT_EQ(fair.reclaim_times().sum_ns, 1'200'000'000) << "both from the begin of its wait";
  EXPECT_EQ(fair.reclaim_times().counts[3], 1u) << "0.1 to 0.25 s";
  EXPECT_EQ(Of("rad").reclaims + Of("lab").reclaims, 0u);
}

TEST_F(Lending, WorkThatStartsAtOnceOrBeyondAGuaranteeOrIsCancelledReclaimsNothing) {
  fair.Advance(100);
  Hold(lab, 3'000);
  fair.Enqueue(path);
  fair.Advance(200);
  Hold(path, 1'000);  // a core was free
  fair.Advance(300);
  EXPECT_EQ(Counted(), 0u);
  fair.Dequeue(path);  // it waited for a second one, and was cancelled
  fair.Advance(400);
  fair.Enqueue(path);
  fair.Advance(500);
  Release(lab, 1'000);
  Hold(path, 1'000);
  EXPECT_EQ(Counted(), 0u);
  fair.Advance(600);
  Release(lab, 1'000);
  Hold(path, 1'000);
  EXPECT_EQ(Counted(), 0u) << "more than it is guaranteed";
  fair.Enqueue(lab);
  fair.Advance(700);
  Release(path, 1'000);
  Hold(lab, 1'000);
  EXPECT_EQ(Counted(), 0u) << "nothing is guaranteed to it";
}

}  // namespace
}  // namespace patchbay::scheduler
