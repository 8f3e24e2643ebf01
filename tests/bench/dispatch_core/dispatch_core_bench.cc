// How many no-op tasks a second the scheduler's core leases and commits, without sockets and disk:
// records are encoded, applied and reported durable at once.
#include <benchmark/benchmark.h>

#include "scheduler/core/core.h"
#include "scheduler/metrics/exposition.h"

namespace patchbay::scheduler {
namespace {

using protocol::Body;

class Cluster {
 public:
  explicit Cluster(std::uint32_t workers) {
    Run([&](Actions& out) { core_.Start(At(), out); });
    core_.PeerJoined(1, {Role::kOperator, "ops", {"/"}, {"/"}});
    core_.PeerJoined(2, {Role::kWorker, "node", {}, {}});
    protocol::RegisterAgent agent;
    agent.node = "node";
    agent.cpus = workers;
    agent.agent_incarnation = 1;
    Tell(2, agent);
    for (std::uint32_t i = 0; i < workers; ++i) {
      core_.PeerJoined(10 + i, {Role::kWorker, "node", {}, {}});
      protocol::RegisterWorker worker;
      worker.node = "node";
      worker.index = i;
      worker.agent_incarnation = 1;
      worker.worker_incarnation = 100 + i;
      worker.capacity = {1000, 0, 0};
      Tell(10 + i, worker);
    }
  }

  void Tick() {
    now_us_ += 200'000;
    Run([&](Actions& out) { core_.Tick(At(), out); });
  }
  /// As the server does once a second where metrics are asked for.
  ClusterMeasures Measure() { return core_.Measure(); }

  /// Users of teams that share by weight, in the place of the one operator.
  void AddUsers(std::uint32_t teams, std::uint32_t users_of_team) {
    std::string policy;
    for (std::uint32_t team = 0; team < teams; ++team) {
      const std::string name = "team" + std::to_string(team);
      policy += (team == 0 ? "\"" : ",\"") + name +
                "\":{\"weight_millis\":" + std::to_string(1000 + 100 * team) + "}";
      for (std::uint32_t i = 0; i < users_of_team; ++i) {
        const PeerId peer = kUser0 + users_++;
        core_.PeerJoined(peer,
                         {Role::kSubmitter, "user" + std::to_string(peer), {"/"}, {"/"}, name});
      }
    }
    Tell(1, protocol::ApplyTeams{"{\"default\":{},\"teams\":{" + policy + "}}", "", ""});
  }

  /// A job of the next user whose root spawns `count` no-op tasks.
  void Submit(std::uint32_t count) {
    protocol::SubmitJob submit;
    submit.submission_key = std::to_string(++jobs_);
    submit.kind = "noop";
    submit.root.op = "root";
    spawn_ = count;
    Tell(users_ == 0 ? 1 : kUser0 + jobs_ % users_, submit);
  }

  /// Workers finish their tasks until none is left. Returns the committed tasks.
  std::uint64_t Drain() {
    std::uint64_t done = 0;
    while (!inbox_.empty()) {
      auto [peer, granted] = std::move(inbox_.back());
      inbox_.pop_back();
      protocol::TasksFinished finished;
      for (const protocol::TaskLease& lease : granted.tasks) {
        protocol::TasksFinished::Item item;
        item.lease = lease.lease;
        item.task = lease.task;
        item.cost.cpu_us = 10;
        if (lease.op == "root") {
          protocol::TaskSpec spec;
          spec.op = "noop";
          spec.group = 1;
          item.spawned.assign(spawn_, spec);
        }
        finished.items.push_back(std::move(item));
      }
      done += finished.items.size();
      Tell(peer, std::move(finished));
    }
    return done;
  }

 private:
  template <typename Event>
  void Run(const Event& event) {
    Actions out;
    event(out);
    const bool wrote = !out.records.empty();
    Keep(std::move(out));
    if (!wrote) return;
    Actions later;
    core_.JournalDurable(core_.last_sequence(), At(), later);
    Keep(std::move(later));
  }
  void Tell(PeerId peer, Body body) {
    now_us_ += 100;
    Run([&](Actions& out) {
      core_.Receive(peer, {protocol::kProtocolVersion, 1, 7, std::move(body)}, At(), out);
    });
  }
  void Keep(Actions&& out) {
    for (SendAction& send : out.sends) {
      if (auto* granted = std::get_if<protocol::LeasesGranted>(&send.body)) {
        inbox_.emplace_back(send.peer, std::move(*granted));
      }
    }
  }
  Instant At() const { return {1000 + now_us_ / 1000, 0}; }

  static constexpr PeerId kUser0 = 100'000;
  Core core_;
  std::uint32_t users_ = 0;
  std::uint64_t jobs_ = 0;
  std::uint32_t spawn_ = 0;
  std::int64_t now_us_ = 0;
  std::vector<std::pair<PeerId, protocol::LeasesGranted>> inbox_;
};

void DispatchNoopTasks(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    cluster.Submit(20'000);
    tasks += cluster.Drain();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(tasks));
}
BENCHMARK(DispatchNoopTasks)->Arg(2)->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

/// The core's part of one look at its metrics.
void MeasureCore(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  for (int jobs = 0; jobs < 100; ++jobs) cluster.Submit(100);
  for (auto _ : state) {
    state.PauseTiming();
    cluster.Tick();  // counts of cores are kept for a moment
    state.ResumeTiming();
    benchmark::DoNotOptimize(cluster.Measure());
  }
}

/// The reader's part: 200 streams, and 64 nodes of 16 workers.
void RenderMetrics(benchmark::State& state) {
  Sample sample;
  for (JobId job = 1; job <= 200; ++job) {
    sample.cluster.streams.push_back({job, 1'234'567 * job, 89'012});
    sample.cluster.open_jobs.push_back({job, 1, 0, 0, 0, 1, 1, 1'000, 1'000});
  }
  for (int i = 0; i < 64; ++i) {
    sample.cluster.nodes.push_back({"node-" + std::to_string(i), "up", 16, 16, 16});
  }
  for (auto _ : state) benchmark::DoNotOptimize(Render(sample));
}
BENCHMARK(MeasureCore)->Arg(128)->Arg(1'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(RenderMetrics)->Unit(benchmark::kMicrosecond);

/// 50 teams of 20 users, each with a job: the first to be served changes with every grant.
void DispatchNoopTasksOfTeams(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
  cluster.AddUsers(50, 20);
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    for (int job = 0; job < 1000; ++job) cluster.Submit(20);
    tasks += cluster.Drain();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(tasks));
}
BENCHMARK(DispatchNoopTasksOfTeams)->Arg(2)->Arg(16)->Arg(128)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace patchbay::scheduler

BENCHMARK_MAIN();
