// The policy of teams: JSON, and rules between its fields.
#include "runtime/model/jobs/team_policy.h"

#include <gtest/gtest.h>

#include "tests/described.h"

namespace patchbay::model {
namespace {

TEST(TeamPolicy, EveryFieldComesBackFromJson) {
  test::ExpectEveryFieldComesBack<TeamGuarantee>();
  test::ExpectEveryFieldComesBack<TeamMost>();
  test::ExpectEveryFieldComesBack<TeamUser>();
  test::ExpectEveryFieldComesBack<TeamRules>();
  test::ExpectEveryFieldComesBack<TeamPolicy>();
}

TEST(TeamPolicy, ValuesOutOfRangeAreRefusedByName) {
  const auto read = [](const char* text) {
    return std::string(MessageOf(FromJson<TeamPolicy>(Json::parse(text), "policy").status()));
  };
  EXPECT_NE(read(R"({"default": {"weight_millis": 0}})").find("weight_millis"), std::string::npos);
  EXPECT_NE(read(R"({"default": {"weight_millis": -1}})").find("weight_millis"), std::string::npos);
  EXPECT_NE(read(R"({"default": null, "half_life_s": 59})").find("half_life_s"), std::string::npos);
  EXPECT_NE(read(R"({"default": {"cores": 1}})").find("cores"), std::string::npos);
}

TEST(TeamPolicy, RulesThatContradictEachOtherAreRefused) {
  TeamPolicy policy;
  EXPECT_TRUE(Check(policy).ok());
  policy.teams["path"].guaranteed.cpu_millis = 2'000;
  policy.teams["path"].most.cpu_millis = 1'999;
  EXPECT_EQ(Check(policy).message(), "team path: most.cores is below guaranteed.cores");
  policy.teams["path"].most.cpu_millis = 2'000;
  EXPECT_TRUE(Check(policy).ok());
  policy.teams["path"].guaranteed.cpu_percent = 10;
  EXPECT_EQ(Check(policy).message(),
            "team path: guaranteed.cores is a number or a percentage, not both");
  policy.teams["path"].guaranteed.cpu_millis = 0;
  policy.teams["path"].guaranteed.gpus = 2;
  policy.teams["path"].most.gpus = 1;
  EXPECT_EQ(Check(policy).message(), "team path: most.gpus is below guaranteed.gpus");
  policy.teams["path"].most.gpus = 2;
  policy.teams["path"].guaranteed.memory_bytes = 2;
  policy.teams["path"].most.memory_bytes = 1;
  EXPECT_EQ(Check(policy).message(), "team path: most.memory is below guaranteed.memory");
  policy.teams["path"].most.memory_bytes.reset();
  policy.teams["rad"].guaranteed.cpu_percent = 91;
  EXPECT_EQ(Check(policy).message(), "guarantees of 101 % of the cores: 100 are the most");
}

TEST(TeamPolicy, PartsOfACoreAreNoCapAndUsersHaveNoneOnJobs) {
  TeamPolicy policy;
  policy.teams["path"].most.cpu_millis = 500;
  EXPECT_EQ(Check(policy).message(), "team path: most.cores is neither 0 nor at least 1");
  policy.teams["path"].most.cpu_millis = 0;
  EXPECT_TRUE(Check(policy).ok());
  policy.teams["path"].users["ann"].most.cpu_millis = 1;
  EXPECT_NE(Check(policy).message().find("user ann: most.cores"), std::string::npos);
  policy.teams["path"].users["ann"].most = {.jobs = 1};
  EXPECT_NE(Check(policy).message().find("user ann: jobs"), std::string::npos);
}

TEST(TeamPolicy, NamesAreCheckedAndTheDefaultTeamHasItsOwnKey) {
  TeamPolicy policy;
  policy.teams["a b"];
  EXPECT_NE(Check(policy).message().find("team 'a b'"), std::string::npos);
  policy.teams = {{kDefaultTeam, {}}};
  EXPECT_NE(Check(policy).message().find("keys without a team"), std::string::npos);
  policy.teams = {{"path", {}}};
  EXPECT_NE(policy.Find("path"), nullptr);
  EXPECT_EQ(policy.Find("gone"), nullptr);
  EXPECT_EQ(policy.Find(""), &*policy.others);
  policy.others.reset();
  EXPECT_EQ(policy.Find(""), nullptr);
}

}  // namespace
}  // namespace patchbay::model
