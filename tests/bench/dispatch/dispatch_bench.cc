// End-to-end dispatch of no-op tasks: the real scheduler process, CURVE and journal on, two workers
// that finish everything they are given, every task its own journal record and outcome. Beside it
// the floor of a task at a time: a request that the scheduler answers at once, without the journal.
//
//   dispatch_bench [TASKS] [CHAIN]     default 200000 2000
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/control/session.h"
#include "tests/scheduler/server/scheduler_process.h"

namespace patchbay {
namespace {

constexpr std::uint32_t kSpawnedAtOnce = 20'000;
constexpr TimeMs kPatienceMs = 120'000;

protocol::TaskSpec NoOp(std::string payload = "") {
  protocol::TaskSpec spec;
  spec.op = "noop";
  spec.payload = std::move(payload);
  return spec;
}

/// Counts the leases that both workers received.
struct Tally {
  std::atomic<std::uint64_t> committed{0};
};

/// A worker that does nothing, at once. Payload "" is a no-op, "wide N" spawns N of them, "chain N"
/// spawns N that depend on each other.
class NoOpWorker {
 public:
  NoOpWorker(const control::KeyFile& key, std::uint32_t index, Tally& tally)
      : key_(key), index_(index), tally_(tally), loop_(*control::EventLoop::Open()) {
    thread_ = std::thread([this] { Run(); });
  }
  ~NoOpWorker() { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    loop_->Stop();
    thread_.join();
  }
  /// When each lease came; the worker's own until Stop.
  std::vector<std::int64_t> lease_times_ns;

 private:
  void Run() {
    session_ = *control::Session::Open(*loop_, key_,
                                       {.on_connected = [this] { Register(); },
                                        .on_lost = {},
                                        .on_fact = [this](auto body) { OnFact(std::move(body)); }});
    loop_->Run();
    session_.reset();
  }

  void Register() {
    protocol::RegisterAgent agent;
    agent.node = key_.name;
    agent.host_identity = key_.name;
    agent.cpus = 1;
    agent.memory_bytes = 1u << 30;
    agent.agent_incarnation = 1;
    session_->Request(agent, kPatienceMs, [this](auto answer) {
      if (!answer.ok()) return Complain(answer.status());
      protocol::RegisterWorker worker;
      worker.node = key_.name;
      worker.index = index_;
      worker.agent_incarnation = 1;
      worker.worker_incarnation = 1;
      worker.pid = getpid();
      worker.capacity.memory_bytes = 1u << 30;
      session_->Request(worker, kPatienceMs, [](auto registered) {
        if (!registered.ok()) Complain(registered.status());
      });
    });
    loop_->Every(500, [this] { session_->Tell(protocol::Heartbeat{}).IgnoreError(); });
  }

  void OnFact(protocol::Body body) {
    if (const auto* granted = std::get_if<protocol::LeasesGranted>(&body)) return Finish(*granted);
    if (const auto* committed = std::get_if<protocol::TasksCommitted>(&body)) {
      tally_.committed += committed->leases.size();
    }
  }

  void Finish(const protocol::LeasesGranted& granted) {
    protocol::TasksFinished finished;
    for (const auto& task : granted.tasks) {
      lease_times_ns.push_back(SteadyNowNs());
      protocol::TasksFinished::Item item;
      item.lease = task.lease;
      item.task = task.task;
      Spawn(task.payload, item.spawned);
      const bool large = !item.spawned.empty();
      finished.items.push_back(std::move(item));
      if (large) Send(std::exchange(finished, {}));
    }
    if (!finished.items.empty()) Send(finished);
  }

  void Send(const protocol::TasksFinished& finished) {
    if (const Status sent = session_->Tell(finished); !sent.ok()) Complain(sent);
  }

  static void Spawn(const std::string& payload, std::vector<protocol::TaskSpec>& spawned) {
    if (payload.rfind("wide ", 0) == 0) {
      const auto count = std::strtoul(payload.c_str() + 5, nullptr, 10);
      if (count <= kSpawnedAtOnce) {
        spawned.assign(count, NoOp());
        return;
      }
      for (std::uint64_t left = count; left != 0;) {
        const auto some = std::min<std::uint64_t>(left, kSpawnedAtOnce);
        spawned.push_back(NoOp(StrCat("wide ", some)));
        left -= some;
      }
    } else if (payload.rfind("chain ", 0) == 0) {
      const auto count = std::strtoul(payload.c_str() + 6, nullptr, 10);
      for (std::uint32_t i = 0; i < count; ++i) {
        spawned.push_back(NoOp());
        if (i > 0) spawned.back().depends_on = {protocol::kSpawnedBase + i - 1};
      }
    }
  }

  static void Complain(const Status& why) {
    std::fprintf(stderr, "worker: %s\n", Describe(why).c_str());
  }

  control::KeyFile key_;
  std::uint32_t index_;
  Tally& tally_;
  std::unique_ptr<control::EventLoop> loop_;
  std::unique_ptr<control::Session> session_;
  std::thread thread_;
};

/// Submits a job and waits until `committed` more tasks are.
bool RunJob(control::RequestClient& client, Tally& tally, const std::string& payload,
            std::uint64_t committed) {
  const std::uint64_t goal = tally.committed + committed;
  protocol::SubmitJob submit;
  submit.submission_key = StrCat(payload, " after ", goal);
  submit.kind = "noop";
  submit.name = payload;
  submit.root = NoOp(payload);
  const auto submitted = client.CallFor<protocol::JobSubmitted>(submit, kPatienceMs);
  if (!submitted.ok()) {
    std::fprintf(stderr, "submit: %s\n", Describe(submitted.status()).c_str());
    return false;
  }
  const std::int64_t deadline = SteadyNowNs() + kPatienceMs * 1'000'000;
  while (tally.committed < goal) {
    if (SteadyNowNs() > deadline) {
      std::fprintf(stderr, "only %lu of %lu tasks were committed\n",
                   static_cast<unsigned long>(tally.committed), static_cast<unsigned long>(goal));
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// True when the scheduler has every counted task on record as done.
bool EverythingIsDone(control::RequestClient& client) {
  const auto described =
      client.CallFor<protocol::JobsDescribed>(protocol::DescribeJobs{}, kPatienceMs);
  if (!described.ok()) return false;
  for (const auto& job : described->jobs) {
    if (job.tasks_done == job.tasks_total && job.state == protocol::JobState::kDone) continue;
    std::fprintf(stderr, "job %s is not done\n", job.name.c_str());
    return false;
  }
  return true;
}

/// User and system time a process has had so far.
double ProcessSeconds(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  unsigned long user = 0, system = 0;
  const auto after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::sscanf(text.c_str() + after_name + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
              &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Microseconds until a small question is answered: two messages, as between two leases.
double RoundTripUs(control::RequestClient& client) {
  constexpr int kQuestions = 2'000;
  std::vector<double> took;
  for (int i = 0; i < kQuestions; ++i) {
    const std::int64_t asked_ns = SteadyNowNs();
    if (!client.CallFor<protocol::JobsDescribed>(protocol::DescribeJobs{}, kPatienceMs).ok()) break;
    took.push_back(static_cast<double>(SteadyNowNs() - asked_ns) / 1e3);
  }
  return took.empty() ? 0 : Median(std::move(took));
}

int Run(std::uint64_t tasks, std::uint64_t chain) {
  scheduler::SchedulerProcess scheduler;
  scheduler.set_address("tcp://127.0.0.1:*");
  auto operator_key = scheduler.NewKey("operator", control::Role::kOperator);
  std::vector<control::KeyFile> node_keys = {scheduler.NewKey("node-0", control::Role::kWorker),
                                             scheduler.NewKey("node-1", control::Role::kWorker)};
  if (scheduler.Start() != 0) {
    std::fprintf(stderr, "%s", scheduler.errors().c_str());
    return 1;
  }
  operator_key.address = scheduler.address();
  for (auto& key : node_keys) key.address = scheduler.address();
  auto client = control::RequestClient::Open(operator_key, kPatienceMs);
  if (!client.ok()) return 1;

  Tally tally;
  auto first = std::make_unique<NoOpWorker>(node_keys[0], 0, tally);
  auto second = std::make_unique<NoOpWorker>(node_keys[1], 0, tally);
  if (!RunJob(**client, tally, "wide 20000", 20'001)) return 1;  // warm: paces are measured
  const std::uint64_t spawners =
      tasks > kSpawnedAtOnce ? (tasks + kSpawnedAtOnce - 1) / kSpawnedAtOnce : 0;
  const std::uint64_t before = tally.committed;
  const std::int64_t start_ns = SteadyNowNs();
  const double cpu_before = ProcessSeconds(scheduler.pid());
  if (!RunJob(**client, tally, StrCat("wide ", tasks), tasks + spawners + 1)) return 1;
  const double seconds = static_cast<double>(SteadyNowNs() - start_ns) / 1e9;
  const double cpu = ProcessSeconds(scheduler.pid()) - cpu_before;
  const std::uint64_t done = tally.committed - before;
  const double rate = static_cast<double>(done) / seconds;
  if (!EverythingIsDone(**client)) return 1;

  const double round_trip_us = RoundTripUs(**client);
  first.reset();  // one at a time needs one worker
  const std::size_t leases_before = second->lease_times_ns.size();
  if (!RunJob(**client, tally, StrCat("chain ", chain), chain + 1)) return 1;
  NoOpWorker& worker = *second;
  worker.Stop();
  std::vector<double> gaps_us;
  for (std::size_t i = leases_before + 2; i < worker.lease_times_ns.size(); ++i) {
    gaps_us.push_back(static_cast<double>(worker.lease_times_ns[i] - worker.lease_times_ns[i - 1]) /
                      1e3);
  }
  std::sort(gaps_us.begin(), gaps_us.end());
  const auto at = [&](double share) {
    return gaps_us[static_cast<std::size_t>(share * static_cast<double>(gaps_us.size() - 1))];
  };
  std::printf("%s\n", DumpJson({{"tasks", done},
                                {"seconds", seconds},
                                {"tasks_per_s", rate},
                                {"scheduler_cpu_seconds", cpu},
                                {"round_trip_us_p50", round_trip_us},
                                {"one_at_a_time_us_p50", at(0.5)},
                                {"one_at_a_time_us_p99", at(0.99)}})
                          .c_str());
  return 0;
}

}  // namespace
}  // namespace patchbay

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  return patchbay::Run(number(1, 200'000), number(2, 2'000));
}
