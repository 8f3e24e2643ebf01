#include <cstdio>

#include <gtest/gtest.h>

#include "tests/sim/share_run.h"
#include "tests/sim/sim_world.h"
#include "tests/sim/why_run.h"

namespace patchbay::sim {
namespace {

constexpr std::uint64_t kSeeds = 700;
constexpr std::uint64_t kLeanSeeds = 450;
constexpr std::uint64_t kGhostSeeds = 300;
constexpr std::uint64_t kMapSeeds = 300;
constexpr std::uint64_t kCostSeeds = 160;
constexpr std::uint64_t kTeamSeeds = 60, kShareSeeds = 40, kLendingSeeds = 40, kWhySeeds = 120;
constexpr std::uint64_t kLargeSeeds = 4;
/// The scheduler ends at every record of these, one run a record.
constexpr std::uint64_t kSeedsCutAtEveryRecord[] = {3, 8, 18};

/// Seeds that once showed a bug run first, always.
constexpr std::uint64_t kFormerlyFailing[] = {
    645,   5033,  26780,  26906,  2,      7,      37,     40,      65,      98,      175,    178,
    1036,  1095,  1542,   1864,   2136,   6849,   6883,   15202,   21431,   23771,   27048,  59509,
    68276, 28585, 209850, 409448, 218450, 411211, 509476, 1309487, 1316399, 6013050, 9000027};

constexpr std::uint64_t kFormerlyFailingMaps[] = {17215, 27211};
constexpr std::uint64_t kFormerlyFailingCosts[] = {659, 9000027};
constexpr std::uint64_t kFormerlyFailingShares[] = {5161, 5401, 5744, 223, 373, 631, 812};

void RunAndReport(std::uint64_t seed, bool large, Coverage& coverage) {
  RunOptions options;
  options.seed = seed;
  options.large = large;
  const RunResult result = RunSeed(options);
  EXPECT_EQ(result.violation, "") << "replay with: patchbay_sim --seed " << seed
                                  << (large ? " --large" : "") << " --trace";
  for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
}

TEST(Simulation, SeedsThatOnceFailedKeepTheirPromises) {
  Coverage coverage;
  for (const std::uint64_t seed : kFormerlyFailing) RunAndReport(seed, false, coverage);
  for (const std::uint64_t seed : kFormerlyFailingMaps) {
    RunOptions options;
    options.seed = seed;
    options.maps = true;
    EXPECT_EQ(RunSeed(options).violation, "")
        << "replay with: patchbay_sim --maps --seed " << seed << " --trace";
  }
  for (const std::uint64_t seed : kFormerlyFailingCosts) {
    RunOptions options;
    options.seed = seed;
    options.costs = true;
    EXPECT_EQ(RunSeed(options).violation, "")
        << "replay with: patchbay_sim --costs --seed " << seed << " --trace";
  }
  for (const std::uint64_t seed : kFormerlyFailingShares) {
    EXPECT_EQ(RunShares(seed, false).violation, "")
        << "replay with: patchbay_sim --shares --seed " << seed << " --trace";
  }
}

TEST(Simulation, NoSeedBreaksAnInvariantAndEveryJobEnds) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) RunAndReport(seed, false, coverage);
  for (const char* fault : {"worker crash",
                            "agent crash",
                            "scheduler crash",
                            "trainer crash",
                            "worker frozen",
                            "trainer frozen",
                            "partition",
                            "message lost",
                            "message duplicated",
                            "journal tail lost",
                            "connection broken",
                            "delivery failed",
                            "delivery lost, reported as sent",
                            "poison task",
                            "hanging task",
                            "poison plan",
                            "hanging plan",
                            "batch moved to a spare slot",
                            "shard fenced",
                            "worker killed by order",
                            "restart from snapshot",
                            "job cancelled",
                            "job retried",
                            "submission repeated",
                            "shard with bad input",
                            "shard that is always void",
                            "shard that is never counted",
                            "trainer resumed from an older token"}) {
    EXPECT_GE(coverage[fault], 20u) << fault << " is hardly tried";
    std::printf("  %-34s %llu\n", fault, static_cast<unsigned long long>(coverage[fault]));
  }
}

TEST(Simulation, NoSeedThatLeansTowardsWhatFoundBugsBreaksAnInvariant) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kLeanSeeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.lean = true;
    const RunResult result = RunSeed(options);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --lean --seed " << seed << " --trace";
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
  }
  for (const char* fault : {"job retried", "job cancelled", "connection broken"}) {
    EXPECT_GE(coverage[fault], 10u) << fault << " is hardly tried";
  }
}

TEST(Simulation, NobodyWaitsForWhatEndedWhateverElseEndsOrComesBack) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kGhostSeeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.ghosts = true;
    const RunResult result = RunSeed(options);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --ghosts --seed " << seed << " --trace";
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
  }
  for (const char* fault :
       {"node leaves", "node vanishes", "node is gone for good", "host reboots", "agent crash",
        "trainer crash", "scheduler crash", "partition", "attached again as a holder ended"}) {
    EXPECT_GE(coverage[fault], 20u) << fault << " is hardly tried";
  }
}

TEST(Simulation, EveryUnitIsFinishedOnceWhateverBecomesOfItsConsumers) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kMapSeeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.maps = true;
    const RunResult result = RunSeed(options);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --maps --seed " << seed << " --trace";
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
  }
  for (const char* fault : {"consumer comes", "consumer leaves", "consumer killed",
                            "trainer frozen", "scheduler crash", "unit failed by its consumer"}) {
    EXPECT_GE(coverage[fault], 20u) << fault << " is hardly tried";
  }
  // One of three ways in which a shard can be bad.
  EXPECT_GE(coverage["shard with bad input"], 10u);
}

TEST(Simulation, UsageIsTheSumOfOutcomes) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kCostSeeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.costs = true;
    options.calm = seed % 4 == 0;  // all that was reported is known then
    options.maps = seed % 4 == 1;
    options.lean = seed % 4 == 2;
    const RunResult result = RunSeed(options);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --costs --seed " << seed << (options.calm ? " --calm" : "")
        << (options.maps ? " --maps" : "") << (options.lean ? " --lean" : "") << " --trace";
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
  }
  for (const char* fault : {"scheduler crash", "shard fenced", "job cancelled", "job retried"}) {
    EXPECT_GE(coverage[fault], 20u) << fault << " is hardly tried";
  }
}

TEST(Simulation, PoliciesThatChangeBreakNoInvariant) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kTeamSeeds; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.teams = true;
    const RunResult result = RunSeed(options);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --teams --seed " << seed << " --trace";
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
  }
  for (const char* event : {"policy", "policy without a team", "scheduler crash"}) {
    EXPECT_GE(coverage[event], 20u) << event << " is hardly tried";
  }
}

TEST(Simulation, UsersHaveTheProcessorTimeThatIsDueToThem) {
  for (std::uint64_t seed = 1; seed <= kShareSeeds; ++seed) {
    EXPECT_EQ(RunShares(seed, false).violation, "")
        << "replay with: patchbay_sim --shares --seed " << seed << " --trace";
  }
}

TEST(Simulation, LentCoresComeBackToTheirOwnersAndNoSooner) {
  for (std::uint64_t seed = 1; seed <= kLendingSeeds; ++seed) {
    EXPECT_EQ(RunLending(seed).violation, "")
        << "replay with: patchbay_sim --lending --seed " << seed;
  }
}

TEST(Simulation, ChangesThatWhyNamesStartTheJob) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kWhySeeds; ++seed) {
    const RunResult result = RunWhys(seed, false);
    EXPECT_EQ(result.violation, "")
        << "replay with: patchbay_sim --whys --seed " << seed << " --trace";
    for (const auto& [cause, times] : result.coverage) coverage[cause] += times;
  }
  for (const char* cause :
       {"held", "recovery", "trainer_absent", "no_node", "numerics", "memory", "gpus", "drained",
        "suspect", "backoff", "planning", "cap_team", "share", "priority"}) {
    EXPECT_GE(coverage[cause], 3u) << cause << " is hardly asked";
  }
}

TEST(Simulation, ASchedulerThatEndsAtAnyRecordKeepsItsPromises) {
  for (const std::uint64_t seed : kSeedsCutAtEveryRecord) {
    RunOptions options;
    options.seed = seed;
    options.calm = true;
    const std::uint64_t records = RunSeed(options).records;
    EXPECT_GE(records, 20u);
    for (options.crash_at_record = 1; options.crash_at_record <= records;
         ++options.crash_at_record) {
      const RunResult result = RunSeed(options);
      EXPECT_EQ(result.violation, "") << "replay with: patchbay_sim --calm --seed " << seed
                                      << " --crash-at " << options.crash_at_record << " --trace";
      EXPECT_EQ(result.coverage.count("scheduler crash"), 1u);
    }
  }
}

TEST(Simulation, HundredsOfWorkersKeepTheSamePromises) {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= kLargeSeeds; ++seed) RunAndReport(seed, true, coverage);
}

TEST(Simulation, TheSameSeedGivesTheSameTrace) {
  for (const std::uint64_t seed : {11u, 12u, 13u}) {
    RunOptions options;
    options.seed = seed;
    const RunResult first = RunSeed(options), second = RunSeed(options);
    EXPECT_EQ(first.trace_hash, second.trace_hash);
    EXPECT_EQ(first.events, second.events);
    EXPECT_NE(first.trace_hash, 0u);
  }
}

}  // namespace
}  // namespace patchbay::sim
