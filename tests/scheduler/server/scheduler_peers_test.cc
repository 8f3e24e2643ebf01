// Powers of peers of every role over the running scheduler process, and their limits.
#include <gtest/gtest.h>

#include "runtime/wire/control/session.h"
#include "runtime/wire/protocol/codec.h"
#include "scheduler/policy/roles.h"
#include "tests/runtime/wire/protocol/every_field.h"
#include "tests/scheduler/server/scheduler_process.h"

namespace patchbay::scheduler {
namespace {

using control::RequestClient;

class SchedulerPeers : public testing::Test {
 protected:
  std::unique_ptr<RequestClient> Connect(const control::KeyFile& key) {
    auto client = RequestClient::Open(key, kProcessPatienceMs);
    EXPECT_TRUE(client.ok()) << Describe(client.status()) << process_.errors();
    return *std::move(client);
  }

  static protocol::SubmitJob Job(const std::string& submission_key) {
    protocol::SubmitJob job;
    job.submission_key = submission_key;
    job.kind = "noop";
    job.name = "test";
    job.root.op = "noop";
    return job;
  }

  SchedulerProcess process_;
};

TEST_F(SchedulerPeers, EveryMessageOfEveryRoleIsAnsweredAsItsRoleAllows) {
  const std::vector<std::pair<control::Role, Role>> roles = {
      {control::Role::kOperator, Role::kOperator},
      {control::Role::kSubmitter, Role::kSubmitter},
      {control::Role::kWorker, Role::kWorker},
      {control::Role::kTrainer, Role::kTrainer}};
  std::vector<control::KeyFile> keys;
  for (const auto& [role, core_role] : roles) {
    keys.push_back(process_.NewKey(control::RoleName(role), role));
  }
  ASSERT_EQ(process_.Start(), 0) << process_.errors();
  for (std::size_t r = 0; r < roles.size(); ++r) {
    const auto client = Connect(keys[r]);
    for (std::size_t body = 0; body < protocol::test::kBodies; ++body) {
      const protocol::Body sent = protocol::test::Filled(body, 17).body;
      SCOPED_TRACE(StrCat(control::RoleName(roles[r].first), " sends ", BodyName(sent)));
      const Status allowed = CheckRole(roles[r].second, sent);
      if (allowed.ok() && std::holds_alternative<protocol::ShutDown>(sent)) continue;
      if (allowed.ok() && std::holds_alternative<protocol::Drain>(sent)) continue;
      const auto answer = client->Call(sent, allowed.ok() ? 300 : kProcessPatienceMs);
      if (!allowed.ok()) {
        EXPECT_EQ(answer.status().code(), allowed.code()) << Describe(answer.status());
      } else {
        EXPECT_NE(answer.status().code(), absl::StatusCode::kInternal);
      }
    }
  }
  EXPECT_TRUE(Connect(keys[0])->Call(protocol::DescribeCluster{}, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, NodeOfAnotherKeyIsRefused) {
  const auto key = process_.NewKey("node-1", control::Role::kWorker);
  process_.NewKey("node-2", control::Role::kWorker);
  ASSERT_EQ(process_.Start(), 0);
  const auto client = Connect(key);
  protocol::RegisterAgent agent;
  agent.agent_incarnation = 1;
  agent.node = "node-2";
  EXPECT_EQ(client->Call(agent, kProcessPatienceMs).status().code(),
            absl::StatusCode::kPermissionDenied);
  protocol::RegisterWorker worker;
  worker.node = "node-2";
  worker.worker_incarnation = worker.agent_incarnation = 1;
  EXPECT_EQ(client->Call(worker, kProcessPatienceMs).status().code(),
            absl::StatusCode::kPermissionDenied);
  agent.node = "node-1";
  EXPECT_TRUE(client->Call(agent, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, JobsOfOthersCannotBeCancelled) {
  const auto ann = process_.NewKey("ann", control::Role::kSubmitter);
  const auto bob = process_.NewKey("bob", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto anns = Connect(ann), bobs = Connect(bob);
  const auto job = anns->CallFor<protocol::JobSubmitted>(Job("a"), kProcessPatienceMs);
  ASSERT_TRUE(job.ok()) << Describe(job.status());
  EXPECT_FALSE(bobs->Call(protocol::CancelJob{job->job}, kProcessPatienceMs).ok());
  EXPECT_TRUE(anns->Call(protocol::CancelJob{job->job}, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, AClientOfOnesOwnCannotPutItsJobBeforeAllOthers) {
  const auto op = process_.NewKey("op", control::Role::kOperator);
  const auto ann = process_.NewKey("ann", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto operators = Connect(op), anns = Connect(ann);
  protocol::SubmitJob job = Job("a");
  job.priority = INT32_MAX;
  EXPECT_EQ(anns->Call(job, kProcessPatienceMs).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(operators->Call(job, kProcessPatienceMs).status().code(),
            absl::StatusCode::kInvalidArgument);
  job.priority = 1;
  EXPECT_EQ(anns->Call(job, kProcessPatienceMs).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(operators->CallFor<protocol::JobSubmitted>(job, kProcessPatienceMs).ok());
  job.priority = -100;
  EXPECT_TRUE(anns->CallFor<protocol::JobSubmitted>(job, kProcessPatienceMs).ok());
  const auto described =
      operators->CallFor<protocol::JobsDescribed>(protocol::DescribeJobs{}, kProcessPatienceMs);
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(described->jobs.size(), 2u) << "what was refused left nothing";
}

TEST_F(SchedulerPeers, SameSubmissionIsTheSameJobAlsoAfterKillMinusNine) {
  const auto key = process_.NewKey("ann", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto client = Connect(key);
  const auto first = client->CallFor<protocol::JobSubmitted>(Job("a"), kProcessPatienceMs);
  const auto second = client->CallFor<protocol::JobSubmitted>(Job("a"), kProcessPatienceMs);
  const auto other = client->CallFor<protocol::JobSubmitted>(Job("b"), kProcessPatienceMs);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(first->job, second->job);
  EXPECT_NE(first->job, other->job);
  process_.Kill();
  ASSERT_EQ(process_.Start(), 0) << process_.errors();
  // The same client, the same connection object: it finds the scheduler again by itself.
  const auto third = client->CallFor<protocol::JobSubmitted>(Job("a"), kProcessPatienceMs);
  ASSERT_TRUE(third.ok()) << Describe(third.status());
  EXPECT_EQ(third->job, first->job);
  const auto described =
      client->CallFor<protocol::JobsDescribed>(protocol::DescribeJobs{}, kProcessPatienceMs);
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(described->jobs.size(), 2u);
}

TEST_F(SchedulerPeers, RevokedKeyIsCutOffAndOthersStay) {
  const auto op = process_.NewKey("op", control::Role::kOperator);
  const auto ann = process_.NewKey("ann", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto operators = Connect(op), anns = Connect(ann);
  ASSERT_TRUE(anns->Call(protocol::DescribeJobs{}, kProcessPatienceMs).ok());
  ASSERT_TRUE(process_.Home().Revoke("ann").ok());
  ASSERT_TRUE(
      operators->CallFor<protocol::KeysReloaded>(protocol::ReloadKeys{}, kProcessPatienceMs).ok());
  constexpr TimeMs kForEver = 0;  // the call waits for the refusal alone
  EXPECT_EQ(anns->Call(protocol::DescribeJobs{}, kForEver).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(operators->Call(protocol::DescribeJobs{}, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, KeyMadeWhileItRunsIsKnownAfterAReload) {
  const auto op = process_.NewKey("op", control::Role::kOperator);
  ASSERT_EQ(process_.Start(), 0);
  const auto late = process_.NewKey("late", control::Role::kSubmitter);
  EXPECT_EQ(RequestClient::Open(late, kProcessPatienceMs).status().code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(Connect(op)->Call(protocol::ReloadKeys{}, kProcessPatienceMs).ok());
  EXPECT_TRUE(RequestClient::Open(late, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, DamagedKeyTableIsNotTakenOver) {
  const auto op = process_.NewKey("op", control::Role::kOperator);
  ASSERT_EQ(process_.Start(), 0);
  const auto client = Connect(op);
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(),
                               StrCat(process_.Home().KeysFolder(), "/bad.yaml"), AsBytes("x: ["),
                               0600)
                  .ok());
  EXPECT_FALSE(client->Call(protocol::ReloadKeys{}, kProcessPatienceMs).ok());
  EXPECT_TRUE(client->Call(protocol::DescribeJobs{}, kProcessPatienceMs).ok());
}

TEST_F(SchedulerPeers, PeerOfAnotherVersionIsToldSo) {
  const auto key = process_.NewKey("ann", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto loop = *control::EventLoop::Open();
  std::unique_ptr<control::ClientSocket> socket;
  StatusOr<protocol::Envelope> answer = absl::UnknownError("none");
  const auto later = protocol::Encode({.version = 2, .request_id = 6, .body = protocol::Drain{}});
  socket = *control::ClientSocket::Connect(
      *loop, {.address = key.address, .server_key = key.server_key, .pair = key.pair},
      {.on_message = [&](std::span<const std::byte> bytes) { answer = protocol::Decode(bytes); },
       .on_connected = [&] { EXPECT_TRUE(socket->Send(AsBytes(*later)).ok()); },
       .on_lost = [](const Status&) {}});
  ASSERT_TRUE(loop->RunUntil([&] { return answer.ok(); }, kProcessPatienceMs));
  EXPECT_EQ(answer->request_id, 6u);
  const auto& failed = std::get<protocol::RequestFailed>(answer->body);
  EXPECT_EQ(failed.outcome.code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(TextOf(failed.outcome).find("version 2"), std::string::npos);
}

TEST_F(SchedulerPeers, GarbageFromAKnownKeyIsDroppedAndTheRestGoesOn) {
  const auto key = process_.NewKey("ann", control::Role::kSubmitter);
  ASSERT_EQ(process_.Start(), 0);
  const auto loop = *control::EventLoop::Open();
  bool connected = false;
  const auto socket = control::ClientSocket::Connect(
      *loop, {.address = key.address, .server_key = key.server_key, .pair = key.pair},
      {.on_message = [](std::span<const std::byte>) {},
       .on_connected = [&] { connected = true; },
       .on_lost = [](const Status&) {}});
  ASSERT_TRUE(socket.ok());
  ASSERT_TRUE(loop->RunUntil([&] { return connected; }, kProcessPatienceMs));
  const auto good = protocol::Encode({.request_id = 1, .body = protocol::DescribeJobs{}});
  for (std::size_t length = 0; length < good->size(); length += 3) {
    ASSERT_TRUE((*socket)->Send(AsBytes(std::string_view(*good).substr(0, length))).ok());
    ASSERT_TRUE((*socket)->Send(AsBytes(std::string(length, '\xff'))).ok());
  }
  EXPECT_TRUE(Connect(key)->Call(protocol::DescribeJobs{}, kProcessPatienceMs).ok());
  EXPECT_EQ(process_.Stop(), 0);
}

}  // namespace
}  // namespace patchbay::scheduler
