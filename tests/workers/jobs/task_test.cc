// The table of ops, the thread that runs them, and their results.
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/os/file.h"
#include "workers/jobs/task_table.h"
#include "workers/process/task_runner.h"

namespace patchbay::workers {
namespace {

StatusOr<TaskOutput> RunOp(const std::string& op, const std::string& payload) {
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.signals = &signals;
  context.payload = Json::parse(payload);
  return RunTask(op, context);
}

TEST(TaskTable, NamesTheNearestOpForOneItDoesNotKnow) {
  const Status status = RunOp("stream.plam", "{}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(MessageOf(status).find("did you mean stream.plan?"), std::string::npos);
}

TEST(TaskTable, ListsItsOpsInOrder) {
  const std::vector<std::string> names = TaskNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) EXPECT_TRUE(HasTask(name));
}

TEST(Noop, SpawnsReturnsAndFailsAsAsked) {
  EXPECT_EQ(RunOp("noop", R"({"spawn": 3})")->spawned.size(), 3u);
  EXPECT_EQ(RunOp("noop", R"({"result": "yes"})")->result, "yes");
  EXPECT_EQ(RunOp("noop", R"({"fail": "why"})").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RunOp("noop", R"({"spawn": -1})").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOp("noop", R"({"spawn": "x"})").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Noop, SpawnsManyInTwoSteps) {
  const auto first = RunOp("noop", R"({"spawn": 25000})");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->spawned.size(), 3u);
  std::size_t total = 0;
  for (const auto& child : first->spawned) total += RunOp("noop", child.payload)->spawned.size();
  EXPECT_EQ(total, 25000u);
}

/// A runner and its reports.
class RunnerTest : public testing::Test {
 protected:
  protocol::TaskLease Lease(std::uint64_t number, const std::string& payload) {
    protocol::TaskLease lease;
    lease.lease = {1, number};
    lease.task = {7, static_cast<std::uint32_t>(number)};
    lease.op = "noop";
    lease.payload = payload;
    return lease;
  }
  protocol::TasksFinished::Item WaitFor(std::uint64_t number) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return ended_.contains({1, number}); });
    return ended_.at({1, number});
  }
  std::size_t count() {
    const std::lock_guard lock(mu_);
    return ended_.size();
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::map<LeaseNumber, protocol::TasksFinished::Item> ended_;  // guarded by mu_
  TaskRunner runner_{{}, [this](protocol::TasksFinished::Item item) {
                       const std::lock_guard lock(mu_);
                       ended_.emplace(item.lease, std::move(item));
                       changed_.notify_all();
                     }};
};

TEST_F(RunnerTest, ReportsResultsAndFailures) {
  ASSERT_TRUE(runner_.Submit(Lease(1, R"({"result": "a"})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(2, R"({"fail": "b"})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(3, "not json")).ok());
  EXPECT_EQ(WaitFor(1).result, "a");
  EXPECT_EQ(StatusOf(WaitFor(2).outcome).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StatusOf(WaitFor(3).outcome).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WaitFor(3).task, (TaskId{7, 3}));
}

TEST_F(RunnerTest, SaysWhatTheTaskThatRunsHasTaken) {
  ASSERT_TRUE(runner_.Submit(Lease(1, R"({"spin_ms": 3600000})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(2, "")).ok());
  std::int64_t before = 0;
  for (int rises = 0; rises < 3;) {
    const std::int64_t taken = runner_.CpuUsOf({1, 1});
    if (taken > before) ++rises;
    before = taken;
    EXPECT_EQ(runner_.CpuUsOf({1, 2}), 0) << "it waits behind the first";
  }
  runner_.Revoke({1, 1});
  WaitFor(1);
  WaitFor(2);
  EXPECT_EQ(runner_.CpuUsOf({1, 1}), 0);
}

TEST_F(RunnerTest, RefusesALeaseItHolds) {
  ASSERT_TRUE(runner_.Submit(Lease(1, R"({"spin_ms": 3600000})")).ok());
  EXPECT_EQ(runner_.Submit(Lease(1, "")).code(), absl::StatusCode::kInvalidArgument);
  runner_.Revoke({1, 1});
}

TEST_F(RunnerTest, StopsARevokedTaskAndReportsNothing) {
  ASSERT_TRUE(runner_.Submit(Lease(1, R"({"spin_ms": 3600000})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(2, R"({"result": "next"})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(3, R"({"spin_ms": 3600000})")).ok());
  ASSERT_TRUE(runner_.Submit(Lease(4, "")).ok());
  runner_.Revoke({1, 3});
  runner_.Revoke({1, 1});
  EXPECT_EQ(WaitFor(2).result, "next");
  WaitFor(4);
  EXPECT_EQ(count(), 2u);
}

TEST_F(RunnerTest, ProgressRisesWhileATaskWorks) {
  const std::uint64_t before = runner_.progress();
  ASSERT_TRUE(runner_.Submit(Lease(1, R"({"spin_ms": 1})")).ok());
  WaitFor(1);
  const std::uint64_t after = runner_.progress();
  EXPECT_GT(after, before);
  ASSERT_TRUE(runner_.Submit(Lease(2, "")).ok());
  WaitFor(2);
  EXPECT_GT(runner_.progress(), after);
}

}  // namespace
}  // namespace patchbay::workers
