// The planning thread of a worker: the tasks that it takes, and the detection of its crashes.
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "ops/all_ops.h"
#include "workers/jobs/task_table.h"
#include "workers/process/planning_crash.h"
#include "workers/process/task_runner.h"

namespace patchbay::workers {
namespace {

protocol::TaskLease Lease(const std::string& op, const std::string& payload = "") {
  protocol::TaskLease lease;
  lease.lease = {1, 1};
  lease.task = {7, 1};
  lease.op = op;
  lease.payload = payload;
  lease.planning = true;
  return lease;
}

/// The outcome of a task of a lane that plans.
Status Planned(const std::string& op) {
  std::mutex mu;
  std::condition_variable changed;
  std::optional<protocol::TasksFinished::Item> ended;  // guarded by mu
  TaskRunnerOptions options;
  options.ops = &ops::Table();
  options.plans = true;
  TaskRunner runner(options, [&](protocol::TasksFinished::Item item) {
    const std::lock_guard lock(mu);
    ended = std::move(item);
    changed.notify_all();
  });
  EXPECT_EQ(runner.Submit(Lease(op)), absl::OkStatus());
  std::unique_lock lock(mu);
  changed.wait(lock, [&] { return ended.has_value(); });
  return StatusOf(ended->outcome);
}

TEST(PlanningThread, RefusesWhatPlansNothing) {
  for (const std::string& op : TaskNames()) {
    if (op.rfind("stream.", 0) == 0) continue;
    const Status refused = Planned(op);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << op;
    EXPECT_NE(MessageOf(refused).find("a stream's tasks plan it"), std::string_view::npos)
        << refused;
  }
}

TEST(PlanningThread, TakesEveryOpThatPlans) {
  for (const char* op : {"stream.plan", "stream.open", "stream.join"}) {
    EXPECT_EQ(MessageOf(Planned(op)).find("a stream's tasks plan it"), std::string_view::npos)
        << op;
  }
  EXPECT_EQ(Planned("stream.plam").code(), absl::StatusCode::kUnimplemented)
      << "unknown is unknown";
}

/// Runs `crash` on a thread that plans, or on another beside it.
template <typename Crash>
void CrashOn(bool planning, const Crash& crash) {
  NamePlanningCrashes();
  std::thread([&] {
    if (!planning) return crash();
    const PlanningThread mark;
    crash();
  }).join();
  _exit(0);
}

/// Ends when its stack does.
int Recurse(int depth) {
  volatile int here[1024];
  here[0] = depth;
  return depth < 0 ? 0 : Recurse(depth + 1) + here[0];
}

class PlanningCrash : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using PlanningCrashDeathTest = PlanningCrash;

TEST_F(PlanningCrashDeathTest, IsToldByItsExitCode) {
  const auto code = testing::ExitedWithCode(protocol::kPlanningCrashed);
  const char* said = "the thread that plans crashed";
  EXPECT_EXIT(CrashOn(true, [] { std::raise(SIGSEGV); }), code, said);
  EXPECT_EXIT(CrashOn(true, [] { *static_cast<volatile int*>(nullptr) = 1; }), code, said);
  EXPECT_EXIT(CrashOn(true, [] { std::abort(); }), code, said);
  EXPECT_EXIT(CrashOn(true, [] { Recurse(0); }), code, said);
}

TEST_F(PlanningCrashDeathTest, IsNotTakenForOneOfAnotherThread) {
  EXPECT_EXIT(CrashOn(false, [] { std::abort(); }), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(CrashOn(false, [] { std::raise(SIGSEGV); }), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(CrashOn(false, [] { *static_cast<volatile int*>(nullptr) = 1; }),
              testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(PlanningCrashDeathTest, IsNotTakenForASignalToTheWholeProcess) {
  EXPECT_EXIT(CrashOn(true, [] { kill(getpid(), SIGSEGV); }), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(PlanningCrashDeathTest, EndsWithItsThread) {
  const auto planned_before = [] {
    { const PlanningThread mark; }
    std::abort();
  };
  EXPECT_EXIT(CrashOn(false, planned_before), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace patchbay::workers
