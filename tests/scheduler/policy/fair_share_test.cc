// Shares of teams and users: single rules, and random states against an oracle of water filling.
#include "scheduler/policy/fair_share.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

constexpr std::int64_t kUnitUs = 10'000;
/// A core that nobody else is on.
constexpr Claim kCore = {{1'000}, {1'000}, {1'000}};

/// Cores that take one unit of work at a time, all in step, for users with a demand each.
class Cluster {
 public:
  explicit Cluster(std::uint32_t cores) : cores_(cores) {}

  AccountId Add(const std::string& team, const std::string& user, double wanted_cores) {
    const AccountId id = fair.Of(team, user);
    users_.push_back({id, wanted_cores});
    return id;
  }
  void Want(AccountId id, double cores) { At(id).wanted = cores; }
  /// Runs for so long, and forgets what was made before.
  void Run(TimeMs ms) {
    for (User& user : users_) user.made = 0;
    fair.SetCapacity({cores_ * 1000ull, 0, 0});
    for (const TimeMs end = now_ + ms; now_ < end; now_ += kUnitUs / 1000) Step();
    ran_ms_ = ms;
    EXPECT_TRUE(fair.IsSound());
  }
  /// Cores that the user had on average.
  double Had(AccountId id) {
    return static_cast<double>(At(id).made) * kUnitUs / 1000 / static_cast<double>(ran_ms_);
  }

  FairShare fair;

 private:
  struct User {
    AccountId id;
    double wanted = 0, backlog = 0;
    std::uint64_t made = 0;
    bool queued = false;
  };
  User& At(AccountId id) {
    return *std::find_if(users_.begin(), users_.end(), [&](const User& u) { return u.id == id; });
  }
  void Queue(User& user) {
    const bool queued = user.backlog >= 1;
    if (queued && !user.queued) fair.Enqueue(user.id);
    if (!queued && user.queued) fair.Dequeue(user.id);
    user.queued = queued;
  }
  void Step() {
    fair.Advance(now_);
    for (User& user : users_) {
      user.backlog = user.wanted == 0 ? 0 : std::min(user.backlog + user.wanted, 1000.0);
      Queue(user);
    }
    struct Running {
      AccountId id;
      std::int64_t estimate_us;
    };
    std::vector<Running> running;
    for (std::uint32_t core = 0; core < cores_; ++core) {
      AccountId next = kNoAccount;
      fair.AnyInOrder([&](AccountId id) {
        if (!fair.MayHold(id, kCore)) return false;
        next = id;
        return true;
      });
      if (next == kNoAccount) break;
      User& user = At(next);
      // Estimates are wrong; the charge is not.
      running.push_back({next, kUnitUs / 2 + static_cast<std::int64_t>(++drawn_ * 7919 % kUnitUs)});
      fair.Grant(next, running.back().estimate_us);
      fair.Hold(next, kCore);
      user.backlog -= 1;
      ++user.made;
      Queue(user);
    }
    for (const auto& [id, estimate_us] : running) {
      fair.Refund(id, estimate_us);
      fair.Charge(id, kUnitUs);
      fair.Release(id, kCore.more, kCore.used);
    }
  }

  std::uint32_t cores_;
  std::vector<User> users_;
  TimeMs now_ = 0, ran_ms_ = 0;
  std::uint64_t drawn_ = 0;
};

TEST(FairShare, TeamsShareByWeightAndUsersOfATeamEvenly) {
  Cluster cluster(2);
  model::TeamPolicy policy;
  policy.teams["path"].weight_millis = 3'000;
  policy.teams["rad"];
  cluster.fair.SetPolicy(policy);
  const AccountId ann = cluster.Add("path", "ann", 2), bob = cluster.Add("path", "bob", 2);
  const AccountId eve = cluster.Add("rad", "eve", 2);
  cluster.Run(20'000);
  EXPECT_NEAR(cluster.Had(ann), 0.75, 0.02);
  EXPECT_NEAR(cluster.Had(bob), 0.75, 0.02);
  EXPECT_NEAR(cluster.Had(eve), 0.5, 0.02);
}

TEST(FairShare, AHundredCoreHoursBehindATeamCostItNothingBesideANewOne) {
  Cluster cluster(2);
  const AccountId old = cluster.Add("old", "ann", 2);
  cluster.Run(1'000);
  cluster.fair.Charge(old, 100ll * 3600 * 1'000'000);
  cluster.Run(1'000);
  const AccountId fresh = cluster.Add("fresh", "bob", 2);
  cluster.Run(20'000);
  EXPECT_NEAR(cluster.Had(old), 1, 0.05);
  EXPECT_NEAR(cluster.Had(fresh), 1, 0.05);
}

TEST(FairShare, TasksAndShardsHaveOrdersOfTheirOwnByTheSameTime) {
  FairShare fair;
  const AccountId ann = fair.Of("path", "ann"), bob = fair.Of("rad", "bob");
  const auto order = [&](WorkKind kind) {
    std::vector<AccountId> all;
    fair.AnyInOrder([&](AccountId one) { return all.push_back(one), false; }, kind);
    return all;
  };
  fair.Enqueue(ann);
  fair.Enqueue(ann, WorkKind::kShards);
  fair.Enqueue(bob, WorkKind::kShards);
  EXPECT_EQ(order(WorkKind::kShards), (std::vector<AccountId>{ann, bob}));
  fair.Grant(ann, 1'000);
  EXPECT_EQ(order(WorkKind::kShards), (std::vector<AccountId>{bob, ann}));
  EXPECT_EQ(order(WorkKind::kTasks), (std::vector<AccountId>{ann}));
  EXPECT_TRUE(fair.IsSound());
  fair.Dequeue(ann);
  EXPECT_TRUE(order(WorkKind::kTasks).empty());
  EXPECT_EQ(order(WorkKind::kShards).size(), 2u);
  EXPECT_TRUE(fair.IsSound());
}

/// Use orders those that waited alike, and nothing else: teams, and users of a team.
TEST(FairShare, OfThoseThatWaitAlikeTheOneThatUsedLeastStartsFirst) {
  FairShare fair;
  model::TeamPolicy policy;
  policy.half_life_s = 60;
  policy.teams["path"];
  policy.teams["rad"];
  fair.SetPolicy(policy);
  const AccountId ann = fair.Of("path", "ann"), bob = fair.Of("rad", "bob");
  const AccountId eve = fair.Of("rad", "eve");
  fair.Charge(ann, 100'000'000);
  fair.Charge(bob, 50'000'000);
  fair.SetPolicy(policy);  // all start over at the same virtual time
  const auto order = [&] {
    std::vector<AccountId> served;
    for (const AccountId id : {ann, bob, eve}) fair.Enqueue(id);
    fair.AnyInOrder([&](AccountId id) {
      served.push_back(id);
      return false;
    });
    for (const AccountId id : {ann, bob, eve}) fair.Dequeue(id);
    return served;
  };
  EXPECT_EQ(order(), (std::vector{eve, bob, ann}));
  fair.Advance(600'000);  // ten half-lives: 0.1 s is left of the 100
  fair.Charge(eve, 60'000'000);
  fair.SetPolicy(policy);
  EXPECT_EQ(order(), (std::vector{ann, bob, eve}));
}

TEST(FairShare, IdleTimeEarnsNothing) {
  Cluster cluster(2);
  const AccountId busy = cluster.Add("busy", "ann", 2), idle = cluster.Add("idle", "bob", 0);
  cluster.Run(100'000);
  EXPECT_NEAR(cluster.Had(busy), 2, 0.01) << "what is idle is lent";
  cluster.Want(idle, 2);
  cluster.Run(2'000);
  EXPECT_LT(cluster.Had(idle), 1.2);
}

TEST(FairShare, AGuaranteeGoesBeforeWeightsAndIsNoCap) {
  Cluster cluster(4);
  model::TeamPolicy policy;
  policy.teams["small"].guaranteed.cpu_millis = 2'000;
  policy.teams["small"].weight_millis = 100;
  policy.teams["large"].weight_millis = 3'000;
  policy.teams["other"];
  cluster.fair.SetPolicy(policy);
  const AccountId small = cluster.Add("small", "ann", 4), large = cluster.Add("large", "bob", 4);
  const AccountId other = cluster.Add("other", "eve", 4);
  cluster.Run(20'000);
  EXPECT_NEAR(cluster.Had(small), 2, 0.05);
  EXPECT_NEAR(cluster.Had(large), 1.5, 0.05);
  EXPECT_NEAR(cluster.Had(other), 0.5, 0.05);
  cluster.Want(large, 0);
  cluster.Want(other, 0);
  cluster.Run(1'000);
  EXPECT_NEAR(cluster.Had(small), 4, 0.05);
  policy.teams["small"].guaranteed.cpu_millis = 0;
  cluster.fair.SetPolicy(policy);
  cluster.Want(large, 4);
  cluster.Run(20'000);
  EXPECT_NEAR(cluster.Had(small), 4 * 0.1 / 3.1, 0.05) << "its past costs nothing";
}

TEST(FairShare, ACapHoldsWhateverElseIsIdle) {
  Cluster cluster(4);
  model::TeamPolicy policy;
  policy.teams["path"].most.cpu_millis = 3'000;
  policy.teams["path"].users["ann"].most.cpu_millis = 1'000;
  cluster.fair.SetPolicy(policy);
  const AccountId ann = cluster.Add("path", "ann", 4), bob = cluster.Add("path", "bob", 4);
  cluster.Run(1'000);
  EXPECT_NEAR(cluster.Had(ann), 1, 0.01);
  EXPECT_NEAR(cluster.Had(bob), 2, 0.01);
}

TEST(FairShare, GuaranteesBeyondTheWholeAreScaledAndSaid) {
  FairShare fair;
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.cpu_millis = 6'000;
  policy.teams["rad"].guaranteed.cpu_percent = 50;
  fair.SetPolicy(policy);
  fair.SetCapacity({8'000, 0, 0});
  EXPECT_TRUE(fair.IsScaled());
  const auto rows = fair.Standings();
  ASSERT_EQ(rows.size(), 3u) << "the default team is the first";
  EXPECT_EQ(rows[1].guaranteed[kCores], 4'800u);
  EXPECT_EQ(rows[2].guaranteed[kCores], 3'200u);
  fair.SetCapacity({12'000, 0, 0});
  EXPECT_FALSE(fair.IsScaled());
  EXPECT_EQ(fair.Standings()[2].guaranteed[kCores], 6'000u);
}

TEST(FairShare, CapsOfGpusAndMemoryKeepOutOnlyWorkThatNeedsThem) {
  using By = FairShare::Refusal::By;
  constexpr Claim kGpu = {{1'000, 1, 0}, {1'000, 1, 0}}, kLarge = {{1'000, 0, 8}, {1'000, 0, 8}};
  FairShare fair;
  model::TeamPolicy policy;
  policy.teams["path"].most.gpus = 1;
  policy.teams["path"].users["ann"].most.memory_bytes = 10;
  policy.teams["rad"].most.gpus = 0;
  fair.SetPolicy(policy);
  const AccountId ann = fair.Of("path", "ann"), eve = fair.Of("rad", "eve");
  EXPECT_TRUE(fair.MayHold(ann, kGpu));
  EXPECT_FALSE(fair.MayHold(eve, kGpu)) << "a cap of none";
  EXPECT_TRUE(fair.MayHold(eve, kCore));
  fair.Hold(ann, kGpu);
  const auto refusal = fair.Forbids(ann, kGpu);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->by, By::kTeamCap);
  EXPECT_EQ(refusal->resource, kGpus);
  EXPECT_EQ(refusal->held, 1u);
  EXPECT_EQ(refusal->most, 1u);
  EXPECT_TRUE(fair.MayHold(ann, {{1'000, 1, 0}, {0, 0, 0}})) << "on the GPU that it has";
  fair.Hold(ann, kLarge);
  const auto large = fair.Forbids(ann, kLarge);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->by, By::kUserCap);
  EXPECT_EQ(large->resource, kMemory);
  EXPECT_TRUE(fair.MayHold(ann, kCore)) << "it needs no memory";
}

TEST(FairShare, AGuaranteeOfGpusIsShortUntilTheTeamHoldsIt) {
  FairShare fair;
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.gpus = 2;
  policy.teams["rad"].guaranteed.gpus = 6;
  fair.SetPolicy(policy);
  fair.SetCapacity({8'000, 4, 0});
  EXPECT_TRUE(fair.IsScaled(kGpus));
  EXPECT_FALSE(fair.IsScaled(kCores));
  const AccountId ann = fair.Of("path", "ann"), bob = fair.Of("rad", "bob");
  const AccountId eve = fair.Of("", "eve");
  EXPECT_TRUE(fair.IsShort(ann, {1'000, 1, 0}));
  EXPECT_FALSE(fair.IsShort(ann, {1'000, 0, 0})) << "its work needs none";
  EXPECT_FALSE(fair.IsShort(eve, {1'000, 1, 0})) << "it is guaranteed none";
  fair.Hold(eve, {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}});
  EXPECT_TRUE(fair.HoldsOf(eve, ann, {1'000, 1, 0}));
  EXPECT_FALSE(fair.HoldsOf(eve, ann, {1'000, 0, 0}));
  fair.Hold(ann, {{0, 1, 0}, {0, 1, 0}, {0, 1, 0}});
  EXPECT_FALSE(fair.IsShort(ann, {1'000, 1, 0})) << "two are scaled to one";
  EXPECT_FALSE(fair.HoldsOf(eve, ann, {1'000, 1, 0}));
  EXPECT_FALSE(fair.HoldsOf(ann, bob, {1'000, 1, 0})) << "within its own guarantee";
}

TEST(FairShare, WhatATeamDoesNotLendStaysIdle) {
  FairShare fair;
  model::TeamPolicy policy;
  policy.teams["path"].guaranteed.cpu_millis = 2'000;
  policy.teams["path"].lend_percent = 50;
  fair.SetPolicy(policy);
  fair.SetCapacity({3'000, 0, 0});
  const AccountId ann = fair.Of("path", "ann"), bob = fair.Of("rad", "bob");
  fair.Hold(bob, kCore);
  EXPECT_TRUE(fair.MayHold(bob, kCore)) << "half of it is lent";
  fair.Hold(bob, kCore);
  const auto refusal = fair.Forbids(bob, kCore);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->by, FairShare::Refusal::By::kNotLent);
  EXPECT_EQ(refusal->resource, kCores);
  EXPECT_EQ(refusal->most, 1'000u);
  EXPECT_TRUE(fair.MayHold(bob, {{1'000}, {1'000}, {0}})) << "beside other work";
  EXPECT_TRUE(fair.MayHold(ann, kCore)) << "its own";
  fair.Hold(ann, kCore);
  EXPECT_TRUE(fair.Keeps(ann, bob).has_value()) << "not beside its own work either";
  EXPECT_FALSE(fair.Keeps(ann, ann).has_value());
  fair.Hold(ann, kCore);
  EXPECT_FALSE(fair.Keeps(ann, bob).has_value()) << "it holds more than it keeps";
  policy.teams["path"].lend_percent = 100;
  fair.SetPolicy(policy);
  EXPECT_FALSE(fair.KeepsAny());
}

TEST(FairShare, UseIsHalvedInAHalfLifeOfMonotonicTime) {
  FairShare fair;
  model::TeamPolicy policy;
  policy.half_life_s = 60;
  fair.SetPolicy(policy);
  const AccountId ann = fair.Of("", "ann");
  fair.Charge(ann, 8'000'000);
  fair.Advance(120'000);
  EXPECT_EQ(fair.Standings().back().used_ms, 2'000u);
  fair.Charge(ann, 1'000'000);
  EXPECT_EQ(fair.Standings().back().used_ms, 3'000u);
}

TEST(FairShare, TasksOfAnAccountAreBehindUntilTheyHaveUsedAsMuchAsItsShards) {
  FairShare fair;
  const AccountId ann = fair.Of("a", "ann");
  EXPECT_TRUE(fair.TasksAreBehind(ann));
  fair.Grant(ann, 400'000, WorkKind::kTasks);
  EXPECT_FALSE(fair.TasksAreBehind(ann));
  fair.Grant(ann, 100'000, WorkKind::kShards);
  fair.Refund(ann, 100'000, WorkKind::kShards);
  fair.Charge(ann, 300'000, WorkKind::kShards);
  EXPECT_FALSE(fair.TasksAreBehind(ann));
  fair.Refund(ann, 400'000, WorkKind::kTasks);
  fair.Charge(ann, 300'000, WorkKind::kTasks);
  EXPECT_TRUE(fair.TasksAreBehind(ann)) << "both have used 0.3 s";
  fair.Charge(ann, 60'000'000, WorkKind::kTasks);
  fair.Charge(ann, 1'000'000, WorkKind::kShards);
  EXPECT_TRUE(fair.TasksAreBehind(ann)) << "a second is the most to catch up";
}

TEST(FairShare, AnAccountIsBehindOnceItsLeadIsMoreThanAWindow) {
  FairShare fair;
  const AccountId ann = fair.Of("a", "ann"), bob = fair.Of("b", "bob");
  fair.Grant(bob, static_cast<std::int64_t>(kFairWindowUs));
  EXPECT_TRUE(fair.IsBefore(ann, bob));
  EXPECT_FALSE(fair.IsBehind(ann, bob));
  fair.Grant(bob, 1);
  EXPECT_TRUE(fair.IsBehind(ann, bob));
  EXPECT_FALSE(fair.IsBehind(bob, ann));
}

/// Lines of the oracle's output.
std::istringstream AskOracle(const std::string& count) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(StrCat("python3 ", PATCHBAY_FAIR_SHARE_ORACLE, " ", count).c_str(), "r"), pclose);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    text += static_cast<char>(c);
  }
  return std::istringstream(text);
}

TEST(FairShare, RandomStatesAreSharedAsWaterFillsThem) {
  const char* const asked = std::getenv("PATCHBAY_FAIR_STATES");
  std::istringstream states = AskOracle(asked == nullptr ? "600" : asked);
  std::uint32_t cores = 0, count = 0, seen = 0;
  for (; states >> cores >> count; ++seen) {
    Cluster cluster(cores / 1000);
    model::TeamPolicy policy;
    std::vector<std::pair<AccountId, double>> expected;
    for (std::uint32_t t = 0; t < count; ++t) {
      const std::string name = StrCat("team", t);
      model::TeamRules& rules = policy.teams[name];
      std::uint32_t cap = 0, users = 0, wanted = 0, share = 0;
      states >> rules.weight_millis >> rules.guaranteed.cpu_millis >> cap >> users;
      if (cap != 0) rules.most.cpu_millis = cap;
      for (std::uint32_t u = 0; u < users; ++u) {
        states >> wanted >> share;
        const AccountId id = cluster.Add(name, StrCat("user", u), wanted / 1000.0);
        expected.emplace_back(id, share / 1000.0);
      }
    }
    cluster.fair.SetPolicy(policy);
    cluster.Run(1'000);
    cluster.Run(5'000);
    for (const auto& [id, share] : expected) {
      EXPECT_NEAR(cluster.Had(id), share, 0.01 * cores / 1000 + 0.05 * share)
          << "state " << seen << ", user " << id;
    }
    if (HasFailure()) break;
  }
  EXPECT_GE(seen, 600u);
}

}  // namespace
}  // namespace patchbay::scheduler
