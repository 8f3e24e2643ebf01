// Agents and workers of the simulation.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {

using protocol::TaskSpec;

namespace {

/// Units of one batch and of several.
std::string MapPlanOf(const TaskLease& lease, std::uint64_t more) {
  const std::string runs = StrCat("[[5,8],[1,3],[17,1],[7,", more + 1, "]]");
  const std::string numerics(
      lease.manifest.substr(2, lease.manifest.size() - 2 - kUnitsMark.size()));
  return StrCat(R"({"plan":"the map","manifest":{"images":[]},"geometry":{"patches_per_epoch":)",
                67 + 7 * more, R"(,"global_batch":4,"tail":"keep","world_size":1)",
                R"(,"shard_patches":2,"numerics":")", numerics, R"(","image_runs":)", runs,
                R"(,"units":)", runs, "}}");
}

/// An epoch in sequential order says which image its patches are of.
std::string PlanOf(const TaskLease& lease) {
  const std::uint64_t more = lease.task.job % 5;
  if (lease.manifest.ends_with(kUnitsMark)) return MapPlanOf(lease, more);
  const std::string runs = more == 0 ? "[[5,12]]" : StrCat("[[5,12],[7,", more, "]]");
  return R"({"plan":"the plan","manifest":{"images":[]},"geometry":{"patches_per_epoch":)" +
         StrCat(60 + 7 * more, R"(,"global_batch":16,"tail":"keep","world_size":)",
                lease.manifest.substr(0, 1), R"(,"shard_patches":3,"numerics":")",
                lease.manifest.substr(2), R"(")",
                lease.task.job % 2 == 0 ? StrCat(R"(,"image_runs":)", runs) : "", "}}");
}

}  // namespace

void World::StartAgent(SimAgent& agent) {
  agent.actor.alive = true;
  ++agent.actor.life;
  ++agent.actor.connection;
  agent.incarnation = next_incarnation_++;
  agent.scheduler_incarnation = 0;
  agent.exits.clear();
  agent.actor.receive = [this, &agent](Body&& body, std::uint64_t request) {
    AgentReceive(agent, std::move(body), request);
  };
  for (auto& worker : agent.workers) {
    AtActor(agent.actor, now_ + dice_.Between(1, 200),
            [this, &agent, w = worker.get()] { StartWorker(agent, *w); });
  }
  AgentLoop(agent);
}

void World::AgentLoop(SimAgent& agent) {
  if (agent.scheduler_incarnation == 0) {
    protocol::RegisterAgent hello;
    hello.node = agent.name;
    hello.host_identity = HostOf(agent.actor);
    hello.cpus = agent.capacity.cpu_millis / 1000;
    hello.memory_bytes = agent.capacity.memory_bytes;
    hello.gpus.resize(agent.capacity.gpus);
    hello.agent_incarnation = agent.incarnation;
    ToScheduler(agent.actor, hello, 1);
  } else {
    protocol::Heartbeat beat;
    for (const auto& worker : agent.workers) {
      const bool silent = !worker->actor.alive || now_ < worker->actor.frozen_until;
      if (silent) beat.silent.push_back(worker->index);
    }
    ToScheduler(agent.actor, beat);
  }
  for (const auto& [incarnation, exited] : agent.exits)
    ToScheduler(agent.actor, exited, incarnation);
  AtActor(agent.actor, now_ + 500, [this, &agent] { AgentLoop(agent); });
}

void World::AgentReceive(SimAgent& agent, Body&& body, std::uint64_t request) {
  if (const auto* registered = std::get_if<protocol::AgentRegistered>(&body)) {
    agent.scheduler_incarnation = registered->scheduler_incarnation;
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    if (seen->scheduler_incarnation != agent.scheduler_incarnation) agent.scheduler_incarnation = 0;
  } else if (std::holds_alternative<protocol::WorkerExitSeen>(body)) {
    agent.exits.erase(request);
  } else if (std::holds_alternative<protocol::RequestFailed>(body)) {
    agent.scheduler_incarnation = 0;
  } else if (const auto* kill = std::get_if<protocol::KillWorker>(&body)) {
    for (auto& worker : agent.workers) {
      if (worker->index != kill->index) continue;
      if (worker->actor.alive && worker->incarnation == kill->worker_incarnation) {
        Hit("worker killed by order");
        return KillWorkerProcess(agent, *worker, true);
      }
    }
    agent.exits[kill->worker_incarnation] = {agent.name, kill->index, kill->worker_incarnation, 9};
    ToScheduler(agent.actor, agent.exits[kill->worker_incarnation], kill->worker_incarnation);
  }
}

void World::StartWorker(SimAgent& agent, SimWorker& worker) {
  if (worker.actor.alive && worker.pid != 0) return;
  worker.actor.alive = true;
  ++worker.actor.life;
  ++worker.actor.connection;
  worker.actor.frozen_until = 0;
  worker.incarnation = next_incarnation_++;
  worker.agent_incarnation = agent.incarnation;
  worker.pid = next_pid_++;
  live_pids_.insert(worker.pid);
  worker.scheduler_incarnation = worker.newest_scheduler = 0;
  worker.early = {};
  worker.work = worker.planning = {};
  worker.shards.clear();
  worker.seen.clear();
  worker.finished.clear();
  worker.rings.clear();
  worker.mapping_since = 0;
  worker.actor.receive = [this, &agent, &worker](Body&& body, std::uint64_t) {
    WorkerReceive(agent, worker, std::move(body));
  };
  WorkerLoop(agent, worker);
}

/// By a signal, also while frozen. `report`: its agent lives and sees it.
void World::KillWorkerProcess(SimAgent& agent, SimWorker& worker, bool report, int signal) {
  if (!worker.actor.alive || worker.pid == 0) return;
  Note(StrCat("process ", worker.pid, " dies"));
  const std::int64_t pid = worker.pid;
  const std::uint64_t incarnation = worker.incarnation;
  worker.actor.alive = false;
  worker.pid = 0;
  live_pids_.erase(pid);
  ProcessEnded(pid);
  if (!report || !agent.actor.alive) return;
  AtActor(agent.actor, now_ + dice_.Between(1, 20), [this, &agent, &worker, incarnation, signal] {
    agent.exits[incarnation] = {agent.name, worker.index, incarnation, signal};
    ToScheduler(agent.actor, agent.exits[incarnation], incarnation);
  });
  AtActor(agent.actor, now_ + dice_.Between(50, 500),
          [this, &agent, &worker] { StartWorker(agent, worker); });
}

void World::CrashAgent(SimAgent& agent) {
  if (!agent.actor.alive) return;
  agent.actor.alive = false;
  for (auto& worker : agent.workers) KillWorkerProcess(agent, *worker, false);
  At(now_ + dice_.Between(50, 5000), [this, &agent] {
    if (!agent.actor.alive && !agent.gone) StartAgent(agent);
  });
}

void World::Register(SimWorker& worker) {
  protocol::RegisterWorker hello;
  hello.node = worker.actor.identity.key_name;
  hello.index = worker.index;
  hello.agent_incarnation = worker.agent_incarnation;
  hello.worker_incarnation = worker.incarnation;
  hello.pid = worker.pid;
  hello.host_identity = HostOf(worker.actor);
  hello.numerics = worker.numerics;
  hello.capacity = worker.capacity;
  for (const SimWorker::Lane* lane : {&worker.work, &worker.planning}) {
    for (const TaskLease& lease : lane->tasks)
      hello.held.push_back({lease.lease, false, lease.task, 0, {}});
  }
  for (const auto& [number, item] : worker.finished)
    hello.held.push_back({number, false, item.task, 0, {}});
  for (const ShardLease& lease : worker.shards) {
    hello.held.push_back({lease.lease, true, {}, lease.stream, lease.shard});
  }
  worker.offered.clear();
  for (const auto& held : hello.held) worker.offered.insert(held.lease);
  ToScheduler(worker.actor, hello, 1);
}

void World::WorkerLoop(SimAgent& agent, SimWorker& worker) {
  if (worker.scheduler_incarnation == 0) {
    Register(worker);
  } else {
    ToScheduler(worker.actor, protocol::Heartbeat{});
    Report(worker, true);
    protocol::RenewLeases renew;
    const auto item = [&](const SimWorker::Lane& lane, const LeaseNumber& lease) {
      const bool runs = lease == lane.running;
      const std::int64_t cpu_us = runs ? CostOf(lease).cpu_us / 2 : 0;
      renew.items.push_back({lease, runs ? lane.progress : 0, cpu_us});
    };
    for (SimWorker::Lane* lane : {&worker.work, &worker.planning}) {
      if (!lane->hangs) ++lane->progress;
      for (const TaskLease& lease : lane->tasks) item(*lane, lease.lease);
    }
    for (const ShardLease& lease : worker.shards) item(worker.work, lease.lease);
    if (!renew.items.empty()) ToScheduler(worker.actor, renew, 2);
  }
  AtActor(worker.actor, now_ + 1000, [this, &agent, &worker] { WorkerLoop(agent, worker); });
}

void World::WorkerReceive(SimAgent& agent, SimWorker& worker, Body&& body) {
  if (const auto* registered = std::get_if<protocol::WorkerRegistered>(&body)) {
    worker.scheduler_incarnation = worker.newest_scheduler = registered->scheduler_incarnation;
    DropFormer(worker);
    TakeLeases(worker, std::exchange(worker.early, {}));
    RunNext(agent, worker);
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    if (seen->scheduler_incarnation != worker.scheduler_incarnation) {
      worker.scheduler_incarnation = 0;
      Register(worker);
    }
  } else if (const auto* failed = std::get_if<protocol::RequestFailed>(&body)) {
    if (failed->outcome.code == static_cast<int>(absl::StatusCode::kFailedPrecondition)) {
      worker.scheduler_incarnation = 0;
    }
  } else if (auto* granted = std::get_if<LeasesGranted>(&body)) {
    TakeLeases(worker, std::move(*granted));
    RunNext(agent, worker);
  } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&body)) {
    DropLeases(worker, revoked->leases);
    RunNext(agent, worker);
  } else if (const auto* renewed = std::get_if<protocol::LeasesRenewed>(&body)) {
    DropLeases(worker, renewed->unknown);
    RunNext(agent, worker);
  } else if (const auto* committed = std::get_if<protocol::TasksCommitted>(&body)) {
    for (const LeaseNumber& lease : committed->leases) worker.finished.erase(lease);
  }
}

/// As in workers/process: late grants of a former scheduler are void.
void World::DropFormer(SimWorker& worker) {
  std::vector<LeaseNumber> late;
  const auto look = [&](const LeaseNumber& lease) {
    if (lease.incarnation < worker.newest_scheduler && worker.offered.count(lease) == 0) {
      late.push_back(lease);
    }
  };
  for (const TaskLease& lease : worker.work.tasks) look(lease.lease);
  for (const TaskLease& lease : worker.planning.tasks) look(lease.lease);
  for (const ShardLease& lease : worker.shards) look(lease.lease);
  DropLeases(worker, late);
}

void World::TakeLeases(SimWorker& worker, LeasesGranted&& granted) {
  if (worker.scheduler_incarnation == 0) {
    for (TaskLease& lease : granted.tasks) worker.early.tasks.push_back(std::move(lease));
    for (ShardLease& lease : granted.shards) worker.early.shards.push_back(lease);
    return;
  }
  const auto former = [&](const auto& lease) {
    return lease.lease.incarnation < worker.newest_scheduler;
  };
  std::erase_if(granted.tasks, former);
  std::erase_if(granted.shards, former);
  for (TaskLease& lease : granted.tasks) {
    SimWorker::Lane& lane = worker.LaneOf(lease);
    if (worker.seen.insert(lease.lease).second) lane.tasks.push_back(std::move(lease));
  }
  for (ShardLease& lease : granted.shards) {
    if (worker.seen.insert(lease.lease).second) worker.shards.push_back(lease);
  }
  const std::size_t queued = std::max(worker.work.tasks.size(), worker.planning.tasks.size());
  if (queued > 1024 || worker.shards.size() > 16) Violation("I11: a worker's queue");
}

/// A revoked lease is dropped, running or not, and a shard's is returned so that the scheduler
/// knows.
void World::DropLeases(SimWorker& worker, const std::vector<LeaseNumber>& revoked) {
  for (const LeaseNumber& number : revoked) {
    worker.seen.insert(number);
    for (SimWorker::Lane* lane : {&worker.work, &worker.planning}) {
      if (lane->running == number) lane->running = {};
      if (lane->running == LeaseNumber{}) lane->hangs = false;
      std::erase_if(lane->tasks, [&](const TaskLease& lease) { return lease.lease == number; });
    }
    const bool dropped = std::erase_if(worker.shards, [&](const ShardLease& lease) {
                           return lease.lease == number;
                         }) != 0;
    protocol::ShardsReturned returned;
    returned.items.push_back({number,
                              0,
                              {},
                              {static_cast<int>(absl::StatusCode::kCancelled), ""},
                              dropped ? CostOf(number) : protocol::WorkCost{}});
    ToScheduler(worker.actor, returned);
  }
}

/// Each thread takes up the next it has; shards go first, planning beside all else.
void World::RunNext(SimAgent& agent, SimWorker& worker) {
  if (worker.planning.running == LeaseNumber{}) RunTask(agent, worker, worker.planning);
  if (worker.work.running != LeaseNumber{}) return;
  if (worker.shards.empty()) return RunTask(agent, worker, worker.work);
  worker.work.progress = 1;
  worker.work.hangs = false;
  const ShardLease lease = worker.shards.front();
  worker.work.running = lease.lease;
  AtActor(worker.actor, now_ + dice_.Between(5, 80), [this, &agent, &worker, lease] {
    if (worker.work.running == lease.lease) FinishShard(agent, worker, lease);
  });
}

/// The first task of an idle lane.
void World::RunTask(SimAgent& agent, SimWorker& worker, SimWorker::Lane& lane) {
  lane.progress = 1;
  lane.hangs = false;
  if (lane.tasks.empty()) return;
  const TaskLease lease = lane.tasks.front();
  lane.running = lease.lease;
  CheckNodeUse(agent);
  const auto runs = [&worker, lease] { return worker.LaneOf(lease).running == lease.lease; };
  if (lease.payload == "poison") {
    return AtActor(worker.actor, now_ + dice_.Between(1, 50), [this, &agent, &worker, lease, runs] {
      if (!runs()) return;
      Hit(lease.planning ? "poison plan" : "poison task");
      // A crash that comes through a library's own handler names no thread.
      const bool named = lease.planning && dice_.Chance(0.7);
      KillWorkerProcess(agent, worker, true, named ? protocol::kPlanningCrashed << 8 : SIGSEGV);
    });
  }
  if (lease.payload == "hang") {
    Hit(lease.planning ? "hanging plan" : "hanging task");
    lane.hangs = true;
    return;
  }
  const bool long_one = lease.payload == "work" || lease.planning;
  const TimeMs takes = long_one ? dice_.Between(50, 900) : dice_.Between(0, 2);
  AtActor(worker.actor, now_ + takes, [this, &agent, &worker, lease, runs] {
    if (runs()) FinishTask(agent, worker, lease);
  });
}

/// Spawns the parts of a slide and the task that closes it, in the group of the task that opens it.
void World::SpawnSlide(std::vector<TaskSpec>& spawned, const TaskId& open, bool bad) {
  TaskSpec spec;
  spec.op = "sim";
  spec.group = audit_.Find(open.job)->tasks[open.index].spec.group;
  spec.payload = "noop";
  for (unsigned i = 0; i < 3; ++i) spawned.push_back(spec);
  if (bad) spawned[1].payload = "bad";
  spec.depends_on = {protocol::kSpawnedBase, protocol::kSpawnedBase + 1,
                     protocol::kSpawnedBase + 2};
  spawned.push_back(spec);
}

/// Tasks that open a stream's images, the last in its own way, and one that joins them to the plan.
void World::SpawnPlan(std::vector<TaskSpec>& spawned, unsigned images, const std::string& last) {
  TaskSpec join;
  join.op = "stream.join";
  join.payload = "join";
  for (unsigned i = 0; i < images; ++i) {
    TaskSpec spec;
    spec.op = "stream.open";
    spec.payload = i + 1 == images ? last : "noop";
    spec.resources.memory_bytes = i % 3 == 0 ? 48u << 20 : 0;
    join.depends_on.push_back(protocol::kSpawnedBase + i);
    spawned.push_back(spec);
  }
  spawned.push_back(join);
}

/// Tasks after the slides that are opened by the tasks before, whether they fail or not.
void World::SpawnAfterSlides(std::vector<TaskSpec>& spawned, std::uint32_t slides) {
  TaskSpec spec;
  spec.op = "sim";
  spec.payload = "noop";
  spec.after_failures = true;
  spec.group = slides + 1;
  for (std::uint32_t i = 0; i < slides; ++i) spec.depends_on.push_back(protocol::kSpawnedBase + i);
  spawned.push_back(spec);
  spec.after_failures = false;
  spec.depends_on = {protocol::kSpawnedBase + static_cast<std::uint32_t>(spawned.size()) - 1};
  spawned.push_back(spec);
}

protocol::TasksFinished::Item World::Outcome(const TaskLease& lease) {
  protocol::TasksFinished::Item item;
  item.lease = lease.lease;
  item.task = lease.task;
  item.progress_bytes = 10;
  unsigned count = 0, salt = 0;
  char kind[16] = "";
  if (lease.payload == "plan" || lease.payload == "join") {
    item.result = PlanOf(lease);
  } else if (std::sscanf(lease.payload.c_str(), "plan %u %15s", &count, kind) == 2) {
    SpawnPlan(item.spawned, count, kind);
  } else if (std::sscanf(lease.payload.c_str(), "fan %u %15s %u", &count, kind, &salt) == 3) {
    static const protocol::Resources kNeeds[] = {{500, 0, 1u << 20},
                                                 {1000, 0, 64u << 20},
                                                 {2000, 0, 200u << 20},
                                                 {1000, 1, 128u << 20},
                                                 {4000, 1, 1u << 30}};
    for (unsigned i = 0; i < count; ++i) {
      TaskSpec spec;
      spec.op = "sim";
      const bool special = std::string(kind) != "noop" && std::string(kind) != "work";
      const bool slide = std::string(kind) == "slide";
      const bool failing = special && !slide && std::string(kind) != "flaky";
      spec.payload = special && i != 0 ? "noop" : kind;
      spec.resources = kNeeds[salt == 0 ? 0 : (i * 7 + salt) % 5];
      spec.group = 1 + i;
      if (i % 5 == 4 && !slide) spec.depends_on = {0, protocol::kSpawnedBase + i - 1};
      if (i % 5 == 4 && !slide) spec.group = i;
      if (slide) spec.payload = i == 0 ? "open bad" : "open";
      item.spawned.push_back(spec);
      // A failing task takes its group along, and its successors; not the tasks that run after
      // failures.
      for (unsigned extra = 0; failing && i + 1 == count && extra < 3; ++extra) {
        spec.payload = "work";
        spec.group = extra == 0 ? 1 : count + extra;
        spec.depends_on.clear();
        if (extra != 0) spec.depends_on.push_back(protocol::kSpawnedBase);
        spec.after_failures = extra == 2;
        item.spawned.push_back(spec);
      }
    }
    TaskSpec summary;
    summary.op = "sim.sum";
    summary.payload = std::string(kind) == "slide" ? "sum" : "noop";
    summary.after_failures = true;
    item.spawned.push_back(summary);
    if (std::string(kind) == "slide") SpawnAfterSlides(item.spawned, count);
  } else if (lease.payload.rfind("open", 0) == 0) {
    const bool bad = lease.payload == "open bad" && ++attempts_[lease.task] <= 1;
    SpawnSlide(item.spawned, lease.task, bad);
  } else if (lease.payload == "sum") {
    TaskSpec clean;
    clean.op = "sim.clean";
    clean.payload = "noop";
    item.spawned.push_back(clean);
  } else if (lease.payload == "bad") {
    item.outcome = {static_cast<int>(absl::StatusCode::kDataLoss), "a bad tile"};
  } else if (lease.payload == "cured" && ++attempts_[lease.task] <= 1) {
    item.outcome = {static_cast<int>(absl::StatusCode::kDataLoss), "a bad tile, then"};
  } else if (lease.payload == "flaky" && ++attempts_[lease.task] <= 2) {
    item.outcome = {static_cast<int>(absl::StatusCode::kUnavailable), "busy"};
  } else {
    item.result = StrCat("result of ", lease.task.ToString());
  }
  return item;
}

void World::FinishTask(SimAgent& agent, SimWorker& worker, const TaskLease& lease) {
  protocol::TasksFinished::Item& item = worker.finished[lease.lease] = Outcome(lease);
  item.cost = CostOf(lease.lease);
  SimWorker::Lane& lane = worker.LaneOf(lease);
  lane.running = {};
  std::erase_if(lane.tasks, [&](const TaskLease& one) { return one.lease == lease.lease; });
  if (lane.tasks.empty() || worker.finished.size() >= 64) Report(worker, false);
  RunNext(agent, worker);
}

void World::Report(SimWorker& worker, bool all) {
  if (worker.finished.empty()) return;
  protocol::TasksFinished finished;
  for (const auto& [number, item] : worker.finished) {
    finished.items.push_back(item);
    if (!all && finished.items.size() >= 512) break;
  }
  ToScheduler(worker.actor, finished, 3);
}

/// As in runtime/wire/data: while the trainer attaches, workers that ask wait, and afterwards none
/// gets the ring for a lease of a former scheduler. A worker does not use a mapping for an older
/// lease than it was made for.
World::Mapping World::MapRing(SimTrainer& trainer, SimWorker& worker, const ShardLease& lease) {
  constexpr TimeMs kPatience = 5000;
  const auto mapped = worker.rings.find(trainer.incarnation);
  if (mapped != worker.rings.end()) {
    worker.mapping_since = 0;
    return lease.lease.incarnation < mapped->second ? Mapping::kRefused : Mapping::kThere;
  }
  if (trainer.barred.count(worker.pid) != 0) return Mapping::kBarred;
  if (!trainer.admits) {
    if (worker.mapping_since == 0) worker.mapping_since = now_;
    if (now_ - worker.mapping_since < kPatience) return Mapping::kLater;
    worker.mapping_since = 0;
    return Mapping::kRefused;
  }
  worker.mapping_since = 0;
  if (lease.lease.incarnation < trainer.admits_since) {
    Hit("ring refused for a former lease");
    return Mapping::kRefused;
  }
  worker.rings[trainer.incarnation] = lease.lease.incarnation;
  trainer.holders.insert(worker.pid);
  return Mapping::kThere;
}

void World::FinishShard(SimAgent& agent, SimWorker& worker, const ShardLease& lease) {
  SimTrainer* trainer = FindTrainer(lease.stream, lease.shard.rank);
  const bool there = trainer != nullptr && trainer->actor.alive && trainer->table != nullptr &&
                     trainer->incarnation == ring_of_[lease.lease];
  const bool local = there && trainer->actor.host == worker.actor.host;
  const Mapping mapping = local ? MapRing(*trainer, worker, lease) : Mapping::kThere;
  if (mapping == Mapping::kLater) {
    return AtActor(worker.actor, now_ + 20, [this, &agent, &worker, lease] {
      if (worker.work.running == lease.lease) FinishShard(agent, worker, lease);
    });
  }
  worker.work.running = {};
  std::erase_if(worker.shards, [&](const ShardLease& one) { return one.lease == lease.lease; });
  const SimJob* job = FindJob(lease.stream);
  if (job != nullptr && job->bad_shard && lease.shard.batch == 1 && lease.shard.shard == 0) {
    ReturnBadShard(worker, lease);
  } else if (!there || mapping == Mapping::kBarred) {
    ReturnShard(worker, lease, absl::StatusCode::kUnavailable);
  } else if (mapping == Mapping::kRefused) {
    ReturnShard(worker, lease, absl::StatusCode::kFailedPrecondition);
  } else if (local) {
    Write(*trainer, lease);
    AtActor(trainer->actor, now_ + dice_.Between(0, 2),
            [this, trainer, lease] { Arrive(*trainer, lease); });
    ReturnShard(worker, lease, absl::StatusCode::kOk);
  } else if (Cut(worker.actor) || Cut(trainer->actor) ||
             (!healed_ && dice_.Chance(faults_.delivery_failure))) {
    Hit("delivery failed");
    ReturnShard(worker, lease, absl::StatusCode::kUnavailable);
  } else if (!healed_ && dice_.Chance(faults_.delivery_failure)) {
    Hit("delivery lost, reported as sent");
    ReturnShard(worker, lease, absl::StatusCode::kOk);
  } else {
    // Some arrive under the next scheduler, which had other plans for their slots.
    const double lateness = options_.ghosts ? 0 : faults_.scheduler_crash_ms != 0 ? 0.2 : 0.02;
    const TimeMs late = !healed_ && dice_.Chance(lateness) ? 9000 : 5;
    AtActor(trainer->actor, now_ + dice_.Between(0, late), [this, trainer, lease] {
      const data::ShardHeader header{.stream = lease.stream,
                                     .shard = lease.shard,
                                     .grant = lease.grant,
                                     .lease = lease.lease,
                                     .arrays = 0,
                                     .times = {}};
      if (trainer->table == nullptr || trainer->incarnation != ring_of_[lease.lease]) return;
      if (!trainer->table->Admit(header).ok()) return CheckRefusal(*trainer, lease);
      Write(*trainer, lease);
      Arrive(*trainer, lease);
    });
    ReturnShard(worker, lease, absl::StatusCode::kOk);
  }
  RunNext(agent, worker);
}

/// Bad in one of three ways, whoever makes it.
void World::ReturnBadShard(SimWorker& worker, const ShardLease& lease) {
  static constexpr struct {
    const char* name;
    absl::StatusCode code;
  } kWays[] = {{"shard with bad input", absl::StatusCode::kDataLoss},
               {"shard that is always void", absl::StatusCode::kFailedPrecondition},
               {"shard that is never counted", absl::StatusCode::kOk}};
  const auto& way = kWays[FindJob(lease.stream)->number % 3];
  Hit(way.name);
  ReturnShard(worker, lease, way.code);
}

void World::ReturnShard(SimWorker& worker, const ShardLease& lease, absl::StatusCode code) {
  protocol::ShardsReturned returned;
  returned.items.push_back(
      {lease.lease, lease.stream, lease.shard, {static_cast<int>(code), ""}, CostOf(lease.lease)});
  ToScheduler(worker.actor, returned);
}

}  // namespace patchbay::sim
