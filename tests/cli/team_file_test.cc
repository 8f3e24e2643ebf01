// Files of teams: each bad one is refused with file, line and key.
#include "runtime/cli/teams/team_file.h"

#include <gtest/gtest.h>

namespace patchbay::cli {
namespace {

std::string TeamFileRefusal(const std::string& text) {
  const auto parsed = ParseTeams(text, "teams.yaml");
  return parsed.ok() ? "" : std::string(MessageOf(parsed.status()));
}

void ExpectRefused(const std::string& text, const std::string& says) {
  const std::string refusal = TeamFileRefusal(text);
  EXPECT_NE(refusal.find(says), std::string::npos) << text << "\nis refused with: " << refusal;
  EXPECT_NE(refusal.find("teams.yaml"), std::string::npos) << refusal;
}

TEST(TeamFile, IsReadAsThePageSays) {
  const auto policy = ParseTeams(R"(
half_life: 12h
lend_max: 500ms
reclaim_after: 5s
teams:
  pathology: {guaranteed: {cores: 8, gpus: 2}, most: {cores: 24.5, streams: 20, jobs: 500}, weight: 2}
  radiology: {guaranteed: {cores: 30%}, lend: 25%, users: {ann: {most: {cores: 4, gpus: 1}}}}
  oncology: {guaranteed: {memory: 1.5GiB}, most: {gpus: 0, memory: 256GiB}}
default: {weight: 0.5, most: {cores: 4}}
)",
                                 "teams.yaml");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->half_life_s, 12u * 3600);
  EXPECT_EQ(policy->lend_max_ms, 500u);
  EXPECT_EQ(policy->reclaim_after_ms, 5'000u);
  const model::TeamRules& pathology = policy->teams.at("pathology");
  EXPECT_EQ(pathology.guaranteed.cpu_millis, 8'000u);
  EXPECT_EQ(pathology.most.cpu_millis, 24'500u);
  EXPECT_EQ(pathology.most.streams, 20u);
  EXPECT_EQ(pathology.most.jobs, 500u);
  EXPECT_EQ(pathology.weight_millis, 2'000u);
  const model::TeamRules& radiology = policy->teams.at("radiology");
  EXPECT_EQ(radiology.guaranteed.cpu_percent, 30u);
  EXPECT_EQ(radiology.users.at("ann").most.cpu_millis, 4'000u);
  EXPECT_EQ(policy->others->weight_millis, 500u);
  EXPECT_EQ(pathology.guaranteed.gpus, 2u);
  EXPECT_EQ(pathology.most.gpus, std::nullopt);
  EXPECT_EQ(pathology.lend_percent, 100u);
  EXPECT_EQ(radiology.lend_percent, 25u);
  EXPECT_EQ(radiology.users.at("ann").most.gpus, 1u);
  const model::TeamRules& oncology = policy->teams.at("oncology");
  EXPECT_EQ(oncology.guaranteed.memory_bytes, 3ull << 29);
  EXPECT_EQ(oncology.most.gpus, 0u);
  EXPECT_EQ(oncology.most.memory_bytes, 256ull << 30);
}

TEST(TeamFile, KeysWithoutATeamAreRefusedOnlyIfItSaysSo) {
  EXPECT_TRUE(ParseTeams("", "teams.yaml")->others.has_value());
  EXPECT_FALSE(ParseTeams("default: null\n", "teams.yaml")->others.has_value());
  EXPECT_TRUE(ParseTeams("default: {}\n", "teams.yaml")->others.has_value());
}

TEST(TeamFile, UnknownKeysAreNamedWithTheirLine) {
  ExpectRefused("teams:\n  a: {wieght: 2}\n", "teams.yaml:2: unknown key 'teams.a.wieght'");
  ExpectRefused("half_live: 1h\n", "did you mean 'half_life'");
  ExpectRefused("teams:\n  a: {most: {gpu: 2}}\n", "did you mean 'gpus'");
}

TEST(TeamFile, NegativeAndAbsurdNumbersAreRefused) {
  for (const char* cores : {"-1", "-0", "nan", "inf", "1e9", "2000000", "8 cores", "x", "101%",
                            "-5%", "0.5%", "''", "[]", "{}"}) {
    ExpectRefused(std::string("teams:\n  a: {guaranteed: {cores: ") + cores + "}}\n",
                  "teams.yaml:2: key 'teams.a.guaranteed.cores'");
  }
  ExpectRefused("teams:\n  a: {most: {jobs: -1}}\n", "key 'teams.a.most.jobs'");
  ExpectRefused("teams:\n  a: {most: {cores: 50%}}\n", "key 'teams.a.most.cores'");
  for (const char* gpus : {"-1", "1.5", "x", "50%"}) {
    ExpectRefused(std::string("teams:\n  a: {most: {gpus: ") + gpus + "}}\n",
                  "teams.yaml:2: key 'teams.a.most.gpus'");
  }
  for (const char* memory : {"0GiB", "-1GiB", "8", "8 GiB", "8GB", "2000000TiB", "x", "''"}) {
    ExpectRefused(std::string("teams:\n  a: {guaranteed: {memory: ") + memory + "}}\n",
                  "teams.yaml:2: key 'teams.a.guaranteed.memory'");
  }
  for (const char* lend : {"101%", "-1%", "50", "0.5%", "x"}) {
    ExpectRefused(std::string("teams:\n  a: {lend: ") + lend + "}\n",
                  "teams.yaml:2: key 'teams.a.lend'");
  }
  ExpectRefused("teams:\n  a: {weight: 0}\n", "key 'teams.a.weight'");
  ExpectRefused("teams:\n  a: {weight: -2}\n", "key 'teams.a.weight'");
  for (const char* time : {"-1h", "59s", "31d", "1y", "h", "1", "1h30m"}) {
    ExpectRefused(std::string("half_life: ") + time + "\n", "teams.yaml:1: key 'half_life'");
  }
  ExpectRefused("lend_max: -1s\n", "key 'lend_max'");
  ExpectRefused("reclaim_after: 1ms\n", "key 'reclaim_after'");
}

TEST(TeamFile, RulesThatContradictEachOtherAreRefused) {
  ExpectRefused("teams:\n  b: {}\n  a: {guaranteed: {cores: 8}, most: {cores: 7}}\n",
                "teams.yaml:3: key 'teams.a': team a: most.cores is below guaranteed.cores");
  ExpectRefused("teams:\n  a: {guaranteed: {cores: 60%}}\n  b: {guaranteed: {cores: 41%}}\n",
                "guarantees of 101 %");
  ExpectRefused("teams:\n  default: {}\n", "teams.yaml:2: key 'teams.default'");
  ExpectRefused("teams:\n  'a b': {}\n", "teams.yaml:2: key 'teams.a b'");
}

TEST(TeamFile, ATwiceNamedUserIsRefused) {
  ExpectRefused("teams:\n  a: {users: {ann: {}, ann: {}}}\n", "ann");
  ExpectRefused("teams:\n  a: {users: {ann: {}}}\n  b: {users: {ann: {}}}\n",
                "teams.yaml:3: key 'teams.b.users.ann': duplicate user: team a has it too");
  ExpectRefused("teams:\n  a: {}\n  a: {}\n", "teams.yaml:3");
}

TEST(TeamFile, HostileTextIsRefused) {
  ExpectRefused("teams: &x\n  a: *x\n", "an alias inside its own anchor");
  ExpectRefused(std::string((1u << 20) + 1, '#'), "teams.yaml");
  ExpectRefused(std::string(100, '['), "teams.yaml");
  ExpectRefused("teams: [a, b]\n", "teams.yaml:1: key 'teams'");
  ExpectRefused("teams:\n  a: 5\n", "teams.yaml:2: key 'teams.a'");
  ExpectRefused("teams:\n\ta: {}\n", "teams.yaml:2");
  ExpectRefused("a: 1\n---\nb: 2\n", "only one document");
  ExpectRefused("teams: {a\xff: {}}\n", "teams.yaml");
}

}  // namespace
}  // namespace patchbay::cli
