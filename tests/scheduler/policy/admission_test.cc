// The messages that each role may send, and the ranks that may join a run that goes on.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/wire/protocol/envelope.h"
#include "scheduler/policy/join_terms.h"
#include "scheduler/policy/roles.h"

namespace patchbay::scheduler {
namespace {

using protocol::Body;
using testing::HasSubstr;

constexpr std::array<Role, 4> kRoles = {Role::kOperator, Role::kSubmitter, Role::kWorker,
                                        Role::kTrainer};

struct Allowed {
  Body message;
  std::array<bool, 4> by_role;  ///< in the order of kRoles
};

/// Every message that some role may send.
std::vector<Allowed> Commands() {
  using namespace protocol;
  constexpr std::array<bool, 4> kAll = {true, true, true, true},
                                kWorkers = {false, false, true, false};
  constexpr std::array<bool, 4> kUsers = {true, true, false, true},
                                kOperators = {true, false, false, false};
  return {{Heartbeat{}, kAll},          {FetchResult{}, kAll},       {RegisterAgent{}, kWorkers},
          {RegisterWorker{}, kWorkers}, {FetchStream{}, kWorkers},   {RenewLeases{}, kWorkers},
          {TasksFinished{}, kWorkers},  {PutResultPart{}, kWorkers}, {ShardsReturned{}, kWorkers},
          {WorkerExited{}, kWorkers},   {Drain{}, kWorkers},         {AttachTrainer{}, kUsers},
          {AnnounceSlots{}, kUsers},    {ShardsCounted{}, kUsers},   {ShardFenced{}, kUsers},
          {PeersDropped{}, kUsers},     {DetachTrainer{}, kUsers},   {SubmitJob{}, kUsers},
          {DescribeJobs{}, kUsers},     {CancelJob{}, kUsers},       {RetryJob{}, kUsers},
          {FetchLogs{}, kUsers},        {DescribeCluster{}, kUsers}, {AdmitBrowser{}, kUsers},
          {ReloadKeys{}, kOperators},   {ShutDown{}, kOperators}};
}

TEST(Roles, EachCommandIsTakenFromItsRolesOnly) {
  for (const auto& [message, by_role] : Commands()) {
    for (std::size_t i = 0; i < kRoles.size(); ++i) {
      const Status status = CheckRole(kRoles[i], message);
      EXPECT_EQ(status.ok(), by_role[i]) << message.index() << " from role " << i;
      EXPECT_EQ(absl::IsPermissionDenied(status), !by_role[i]) << message.index() << ", " << i;
    }
  }
}

TEST(Roles, WhatTheSchedulerStatesIsTakenFromNobody) {
  using namespace protocol;
  const std::vector<Body> facts = {
      HeartbeatSeen{},    RequestFailed{},   AgentRegistered{}, LeasesGranted{}, LeasesRevoked{},
      KillWorker{},       TrainerAttached{}, FenceShard{},      JobSubmitted{},  ResultFetched{},
      ClusterDescribed{}, KeysReloaded{},    ResultPartKept{}};
  for (const Body& fact : facts) {
    for (const Role role : kRoles) {
      EXPECT_TRUE(absl::IsInvalidArgument(CheckRole(role, fact))) << fact.index();
    }
  }
  EXPECT_GT(std::variant_size_v<Body::variant>, Commands().size() + facts.size());
}

TEST(Join, WhatDiffersIsNamed) {
  const std::string payload =
      R"({"batch":{"global_size":8},"cluster_numerics":"cpu","start":[1,2]})";
  const std::string manifest = R"({"images":["/a"]})";
  const auto refusal = [&](std::uint32_t world_size, const std::string& asked_manifest,
                           const std::string& asked_payload) {
    protocol::SubmitJob asked;
    asked.name = "run";
    asked.world_size = world_size;
    asked.manifest = asked_manifest;
    asked.root.payload = asked_payload;
    const Status status = CheckJoin(asked, {7, payload, manifest, 2});
    EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
    return std::string(MessageOf(status));
  };
  EXPECT_EQ(refusal(2, manifest, payload), "");
  EXPECT_EQ(refusal(2, manifest,
                    R"({"batch":{"global_size":8},"cluster_numerics":"cuda","start":[1,2]})"),
            "")
      << "what the cluster offered at the time does not count";
  for (const std::uint32_t ranks : {1u, 3u}) {
    EXPECT_THAT(refusal(ranks, manifest, payload),
                HasSubstr(StrCat("job 7 has this name and runs for 2 ranks, not ", ranks)));
  }
  EXPECT_THAT(refusal(2, R"({"images":["/b"]})", payload), HasSubstr("over another dataset"));
  EXPECT_THAT(refusal(2, manifest, R"({"batch":{"global_size":9},"start":[1,2]})"),
              HasSubstr("key 'batch.global_size' differs"));
  EXPECT_THAT(refusal(2, manifest, R"({"batch":{"global_size":8},"start":[1,3]})"),
              HasSubstr("from epoch 1, batch 2, not from epoch 1, batch 3"));
}

}  // namespace
}  // namespace patchbay::scheduler
