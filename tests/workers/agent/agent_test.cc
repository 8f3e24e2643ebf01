// The real agent and its real workers against a scheduler the test plays.
#include "workers/agent/agent.h"

#include <csignal>
#include <cstdlib>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/workers/agent/played_scheduler.h"
#include "tests/workers/agent/watched_process.h"
#include "workers/process/child_process.h"

namespace patchbay::workers {
namespace {

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* bin = std::getenv("PATCHBAY_BIN");
    if (bin == nullptr) GTEST_SKIP() << "needs the programs of PATCHBAY_BIN";
    bin_ = bin;
  }
  void TearDown() override {
    if (process_ > 0) kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
  }

  void Start(const std::string& program, std::vector<std::string> flags) {
    ChildOptions options;
    options.arguments = {bin_ + "/" + program, "--key", scheduler_.key_path()};
    options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
    process_ = StartChild(options);
    ASSERT_GT(process_, 0);
  }
  void StartAgent(const std::string& cpus) {
    Start("patchbay-agent", {"--cpus", cpus, "--gpus", "none"});
  }

  int ExitCode() {
    int wait_status = -1;
    waitpid(process_, &wait_status, 0);
    process_ = 0;
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  }
  /// The same, while the scheduler hears and answers others.
  int ExitCodeWhileServing() {
    siginfo_t ended{};
    EXPECT_TRUE(scheduler_.RunUntil([&] {
      return waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
             ended.si_pid == process_;
    }));
    return ExitCode();
  }
  protocol::LeasesGranted Grant(std::uint64_t number, const std::string& payload) const {
    protocol::TaskLease lease;
    lease.lease = {scheduler_.incarnation, number};
    lease.task = {1, static_cast<std::uint32_t>(number)};
    lease.op = "noop";
    lease.payload = payload;
    return {{lease}, {}};
  }

  std::string bin_;
  PlayedScheduler scheduler_;
  pid_t process_ = 0;
};

TEST_F(AgentTest, StartsAWorkerPerCoreOnceTheNodeIsRegistered) {
  StartAgent("2");
  const auto [agent, node] = scheduler_.ExpectAgent();
  EXPECT_EQ(node.node, "node");
  EXPECT_EQ(node.cpus, 2u);
  EXPECT_GT(node.memory_bytes, 0u);
  EXPECT_FALSE(node.host_identity.empty());
  std::set<std::uint32_t> indices;
  for (int i = 0; i < 2; ++i) {
    const auto [peer, worker] = scheduler_.ExpectWorker();
    EXPECT_EQ(worker.agent_incarnation, node.agent_incarnation);
    EXPECT_NE(worker.worker_incarnation, 0u);
    EXPECT_EQ(kill(static_cast<pid_t>(worker.pid), 0), 0);
    indices.insert(worker.index);
  }
  EXPECT_EQ(indices, (std::set<std::uint32_t>{0, 1}));
}

TEST_F(AgentTest, ReportsAWorkerThatDiesAndStartsAnother) {
  StartAgent("1");
  scheduler_.ExpectAgent();
  const auto first = scheduler_.ExpectWorker().second;
  kill(static_cast<pid_t>(first.pid), SIGKILL);
  const auto [agent, exited] = scheduler_.Expect<protocol::WorkerExited>();
  EXPECT_EQ(exited.index, first.index);
  EXPECT_EQ(exited.worker_incarnation, first.worker_incarnation);
  EXPECT_TRUE(WIFSIGNALED(exited.wait_status));
  scheduler_.Answer(agent, protocol::WorkerExitSeen{});
  const auto second = scheduler_.ExpectWorker().second;
  EXPECT_EQ(second.index, first.index);
  EXPECT_NE(second.worker_incarnation, first.worker_incarnation);
}

TEST_F(AgentTest, KillsAFrozenWorkerWhenToldTo) {
  StartAgent("1");
  const control::PeerId agent = scheduler_.ExpectAgent().first;
  const auto worker = scheduler_.ExpectWorker().second;
  kill(static_cast<pid_t>(worker.pid), SIGSTOP);
  scheduler_.Send(agent, protocol::KillWorker{worker.index, worker.worker_incarnation});
  const auto exited = scheduler_.Expect<protocol::WorkerExited>().second;
  EXPECT_EQ(exited.worker_incarnation, worker.worker_incarnation);
  EXPECT_TRUE(EndsSoon(static_cast<pid_t>(worker.pid)));
}

TEST_F(AgentTest, ReplacesAFrozenWorkerUnasked) {
  StartAgent("1");
  scheduler_.ExpectAgent();
  const auto first = scheduler_.ExpectWorker().second;
  kill(static_cast<pid_t>(first.pid), SIGSTOP);
  const auto [agent, exited] = scheduler_.Expect<protocol::WorkerExited>();
  EXPECT_EQ(exited.worker_incarnation, first.worker_incarnation);
  scheduler_.Answer(agent, protocol::WorkerExitSeen{});
  EXPECT_NE(scheduler_.ExpectWorker().second.worker_incarnation, first.worker_incarnation);
}

TEST_F(AgentTest, ReportsAWorkerItDoesNotHaveAsGoneAndLeavesItsSuccessorAlone) {
  StartAgent("1");
  const control::PeerId agent = scheduler_.ExpectAgent().first;
  const auto worker = scheduler_.ExpectWorker().second;
  scheduler_.Send(agent, protocol::KillWorker{worker.index, worker.worker_incarnation + 1});
  const auto gone = scheduler_.Expect<protocol::WorkerExited>().second;
  EXPECT_EQ(gone.worker_incarnation, worker.worker_incarnation + 1);
  scheduler_.Send(agent, protocol::KillWorker{worker.index + 5, worker.worker_incarnation});
  const auto unknown = scheduler_.Expect<protocol::WorkerExited>().second;
  EXPECT_EQ(unknown.index, worker.index + 5);
  EXPECT_EQ(kill(static_cast<pid_t>(worker.pid), 0), 0);
}

TEST_F(AgentTest, RegistersAgainAfterTheSchedulerRestarted) {
  StartAgent("1");
  const auto before = scheduler_.ExpectAgent().second;
  const auto worker_before = scheduler_.ExpectWorker().second;
  scheduler_.Restart();
  const auto after = scheduler_.ExpectAgent().second;
  EXPECT_EQ(after.agent_incarnation, before.agent_incarnation);
  EXPECT_EQ(scheduler_.ExpectWorker().second.worker_incarnation, worker_before.worker_incarnation);
}

TEST_F(AgentTest, MakesRoomForANewerAgentOfItsNode) {
  StartAgent("1");
  const auto agent = scheduler_.Expect<protocol::RegisterAgent>().first;
  protocol::RequestFailed refused;
  refused.outcome = {static_cast<std::int32_t>(absl::StatusCode::kAborted), "a newer agent"};
  scheduler_.Answer(agent, refused);
  EXPECT_EQ(ExitCode(), kExitFailed);  // its supervisor's next agent has a number of its own
}

TEST_F(AgentTest, LeavesANodeToTheAgentOfThisMachineThatHasItsKey) {
  StartAgent("1");
  const auto first = scheduler_.ExpectAgent().second;
  scheduler_.ExpectWorker();
  const pid_t holder = process_;
  testing::internal::CaptureStderr();
  StartAgent("1");
  const int exit_code = ExitCodeWhileServing();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(exit_code, kExitGivenUp);
  const std::string why =
      StrCat("the key node is in use by another node on this machine (pid ", holder, ")");
  const std::size_t waiting = said.find("not registered yet: register node: " + why);
  ASSERT_NE(waiting, std::string::npos) << said;
  EXPECT_EQ(said.find("not registered yet", waiting + 1), std::string::npos) << said;
  EXPECT_NE(said.find("patchbay-agent: register node: " + why), std::string::npos) << said;
  EXPECT_FALSE(scheduler_.Take<protocol::RegisterAgent>().has_value());
  process_ = holder;
}

TEST_F(AgentTest, TakesOverAsSoonAsTheAgentBeforeItHasDied) {
  StartAgent("1");
  const auto first = scheduler_.ExpectAgent().second;
  const pid_t holder = std::exchange(process_, 0);
  StartAgent("1");
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_NE(scheduler_.ExpectAgent().second.agent_incarnation, first.agent_incarnation);
}

TEST_F(AgentTest, AsksAgainOnceAtATimeWhenItsKeyIsInUseElsewhere) {
  StartAgent("1");
  protocol::RequestFailed refused;
  refused.outcome = {static_cast<std::int32_t>(absl::StatusCode::kAlreadyExists), "in use"};
  for (int i = 0; i < 3; ++i) {
    const auto agent = scheduler_.Expect<protocol::RegisterAgent>().first;
    scheduler_.Answer(agent, refused);
  }
  scheduler_.ExpectAgent();
  scheduler_.ExpectWorker();
}

TEST_F(AgentTest, GivesUpWhenNoneOfItsWorkersCanStart) {
  Start("patchbay-agent", {"--cpus", "2", "--gpus", "none", "--memory", "2"});
  scheduler_.ExpectAgent();
  std::set<std::uint32_t> ended;
  while (ended.size() < 2) {
    const auto [agent, exited] = scheduler_.Expect<protocol::WorkerExited>();
    ASSERT_NE(exited.wait_status, 0);
    scheduler_.Answer(agent, protocol::WorkerExitSeen{});
    ended.insert(exited.index);
  }
  EXPECT_EQ(ExitCode(), kExitGivenUp);
}

TEST_F(AgentTest, DrainsOnSigtermAndLetsARunningTaskFinish) {
  StartAgent("1");
  scheduler_.ExpectAgent();
  const auto [worker, registered] = scheduler_.ExpectWorker();
  scheduler_.Send(worker, Grant(1, R"({"spin_ms": 300, "result": "finished"})"));
  kill(process_, SIGTERM);
  for (int i = 0; i < 2; ++i) {  // the agent's and the worker's, in either order
    const auto [peer, drain] = scheduler_.Expect<protocol::Drain>();
    scheduler_.Answer(peer, protocol::Drained{});
  }
  KillAsAStranger(process_, SIGTERM);  // one signal to all, which the parent passed on before
  const auto [peer, finished] = scheduler_.Expect<protocol::TasksFinished>();
  ASSERT_EQ(finished.items.size(), 1u);
  EXPECT_EQ(finished.items[0].result, "finished");
  scheduler_.Answer(peer, protocol::TasksCommitted{{finished.items[0].lease}});
  const auto [agent, exited] = scheduler_.Expect<protocol::WorkerExited>();
  EXPECT_EQ(exited.wait_status, 0);
  scheduler_.Answer(agent, protocol::WorkerExitSeen{});
  EXPECT_EQ(ExitCode(), kExitStopped);
}

TEST_F(AgentTest, ADrainKillsWhatStillRunsAfterItsTimeOrAtASecondSignal) {
  for (const bool second_signal : {false, true}) {
    Start("patchbay-agent",
          {"--cpus", "1", "--gpus", "none", "--drain-ms", second_signal ? "3600000" : "100"});
    scheduler_.ExpectAgent();
    const control::PeerId worker = scheduler_.ExpectWorker().first;
    scheduler_.Send(worker, Grant(1, R"({"spin_ms": 3600000})"));
    kill(process_, SIGTERM);
    for (int i = 0; i < 2; ++i) {
      const auto [peer, drain] = scheduler_.Expect<protocol::Drain>();
      scheduler_.Answer(peer, protocol::Drained{});
    }
    if (second_signal) kill(process_, SIGTERM);
    const auto [agent, exited] = scheduler_.Expect<protocol::WorkerExited>();
    EXPECT_TRUE(WIFSIGNALED(exited.wait_status) && WTERMSIG(exited.wait_status) == SIGKILL);
    scheduler_.Answer(agent, protocol::WorkerExitSeen{});
    EXPECT_EQ(ExitCode(), kExitStopped);
  }
}

TEST_F(AgentTest, ItsDeathTakesTheWorkersAlong) {
  StartAgent("2");
  scheduler_.ExpectAgent();
  const auto first = scheduler_.ExpectWorker().second, second = scheduler_.ExpectWorker().second;
  kill(process_, SIGKILL);
  EXPECT_TRUE(EndsSoon(static_cast<pid_t>(first.pid)));
  EXPECT_TRUE(EndsSoon(static_cast<pid_t>(second.pid)));
}

TEST_F(AgentTest, CannotStartWithWrongFlags) {
  Start("patchbay-agent", {"--cpu", "1"});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  Start("patchbay-agent", {"--gpus", "GPU-no-such-gpu"});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  Start("patchbay-worker", {"--numerics", "abacus"});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
}

TEST_F(AgentTest, AWorkerRepeatsAnOutcomeUntilItIsCommittedAndOffersTheLeaseAgain) {
  Start("patchbay-worker", {"--index", "3"});
  const auto [worker, registered] = scheduler_.ExpectWorker();
  EXPECT_EQ(registered.index, 3u);
  EXPECT_TRUE(registered.held.empty());
  scheduler_.Send(worker, Grant(1, R"({"result": "x"})"));
  const auto first = scheduler_.Expect<protocol::TasksFinished>().second;  // and never answered
  scheduler_.Restart();
  const auto again = scheduler_.ExpectWorker().second;
  ASSERT_EQ(again.held.size(), 1u);
  EXPECT_EQ(again.held[0].lease, first.items[0].lease);
  const auto [peer, second] = scheduler_.Expect<protocol::TasksFinished>();
  ASSERT_EQ(second.items.size(), 1u);
  EXPECT_EQ(second.items[0].result, "x");
  scheduler_.Answer(peer, protocol::TasksCommitted{{second.items[0].lease}});
}

TEST_F(AgentTest, AWorkerThatDrainsDoesNotWaitForASchedulerThatIsSilent) {
  Start("patchbay-worker", {});
  const control::PeerId worker = scheduler_.ExpectWorker().first;
  scheduler_.Send(worker, Grant(1, R"({"result": "x"})"));
  scheduler_.Expect<protocol::TasksFinished>();  // and never answered
  kill(process_, SIGTERM);
  EXPECT_EQ(ExitCode(), kExitDone);
}

TEST_F(AgentTest, AWorkerReportsNoMoreThanTheCostOfARevokedTask) {
  Start("patchbay-worker", {});
  const control::PeerId worker = scheduler_.ExpectWorker().first;
  scheduler_.Send(worker, Grant(1, R"({"spin_ms": 3600000})"));
  scheduler_.Send(worker, protocol::LeasesRevoked{{{scheduler_.incarnation, 1}}});
  scheduler_.Send(worker, Grant(2, R"({"result": "next"})"));
  auto finished = scheduler_.Expect<protocol::TasksFinished>().second;
  ASSERT_EQ(finished.items.size(), 1u);
  if (finished.items[0].lease.counter == 1) {  // it ran long enough to have a cost
    EXPECT_EQ(finished.items[0].outcome.code,
              static_cast<std::int32_t>(absl::StatusCode::kCancelled));
    EXPECT_NE(finished.items[0].cost, protocol::WorkCost{});
    finished = scheduler_.Expect<protocol::TasksFinished>().second;
    ASSERT_EQ(finished.items.size(), 1u);
  }
  EXPECT_EQ(finished.items[0].lease.counter, 2u);
  EXPECT_EQ(finished.items[0].result, "next");
}

TEST_F(AgentTest, AWorkerAsksOnceForAStreamItDoesNotKnow) {
  Start("patchbay-worker", {});
  const control::PeerId worker = scheduler_.ExpectWorker().first;
  protocol::LeasesGranted granted;
  for (std::uint64_t number : {1u, 2u}) {
    protocol::ShardLease& lease = granted.shards.emplace_back();
    lease.lease = {scheduler_.incarnation, number};
    lease.stream = 5;
    lease.grant.count = 1;
  }
  scheduler_.Send(worker, granted);
  EXPECT_EQ(scheduler_.Expect<protocol::FetchStream>().second.stream, 5u);
  Outcome gone{static_cast<std::int32_t>(absl::StatusCode::kNotFound), "no such stream"};
  scheduler_.Answer(worker, protocol::RequestFailed{gone});
  std::size_t returned = 0;
  while (returned < 2) {
    for (const auto& item : scheduler_.Expect<protocol::ShardsReturned>().second.items) {
      EXPECT_EQ(item.outcome.code, gone.code);
      ++returned;
    }
  }
}

}  // namespace
}  // namespace patchbay::workers
