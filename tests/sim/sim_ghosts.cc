// The ends of a `--ghosts` run, of all processes or some, for good or not, and how long anybody
// waits for them.
#include <algorithm>
#include <utility>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {
namespace {

/// It works, or a task is alone on it: one that was leased before may have ended its workers.
bool IsBusy(const SimWorker& worker, const Audit& audit) {
  const auto& plans = worker.planning.tasks;
  return !worker.shards.empty() || !worker.work.tasks.empty() ||
         std::any_of(plans.begin(), plans.end(),
                     [&](const TaskLease& lease) { return audit.GrantsOf(lease.task) > 1; });
}

/// A node may have fewer cores than its workers could use.
bool HasCore(const SimAgent& agent, const Audit& audit) {
  std::uint32_t used = 0;
  for (const auto& worker : agent.workers) {
    if (IsBusy(*worker, audit)) used += worker->capacity.cpu_millis;
  }
  return used + 1000 <= agent.capacity.cpu_millis;
}

}  // namespace

/// Everything ends at times, with anything else, and comes back or does not.
void World::GhostFaults() {
  faults_ = {};
  faults_.nodes_least = 2;
  faults_.hosts = 1 + dice_.Below(3);
  faults_.streams = 1;
  faults_.cancelled = 0;
  faults_.batches = 120;
  faults_.disk_ms = 1;
  faults_.vanish_ms = dice_.Between(4000, 9000);
  if (dice_.Chance(0.3)) faults_.partition_ms = dice_.Between(5000, 9000);
}

std::string World::HostOf(const Actor& actor) const {
  const auto boot = boots_.find(actor.host);
  return StrCat("host-", actor.host, "-", boot == boots_.end() ? 0u : boot->second);
}

/// Without its agent's report, unless it `leaves` in the regular way; for good, or it is started
/// again. The first node always comes back.
void World::EndNode(SimAgent& agent, bool leaves) {
  if (!agent.actor.alive) return;
  Hit(leaves ? "node leaves" : "node vanishes");
  agent.gone = &agent != agents_.front().get() && dice_.Chance(0.3);
  if (agent.gone) Hit("node is gone for good");
  for (auto& worker : agent.workers) {
    if (leaves && worker->actor.alive && worker->pid != 0) {
      const protocol::WorkerExited exited{agent.name, worker->index, worker->incarnation, 0};
      ToScheduler(agent.actor, exited, worker->incarnation);
    }
    KillWorkerProcess(agent, *worker, false);
  }
  // Its last messages are on their way.
  const TimeMs ends = leaves ? 20 : 0;
  At(now_ + ends, [this, &agent] {
    agent.actor.alive = false;
    for (auto& worker : agent.workers) KillWorkerProcess(agent, *worker, false);
  });
  if (agent.gone) return;
  At(now_ + ends + dice_.Between(50, 8000), [this, &agent] {
    if (!agent.actor.alive && !agent.gone) StartAgent(agent);
  });
}

/// Its nodes and trainers end; those that return have another boot id.
void World::RebootHost(int host) {
  Hit("host reboots");
  for (auto& agent : agents_) {
    if (agent->actor.host == host) EndNode(*agent, false);
  }
  ++boots_[host];
  for (SimTrainer& trainer : trainers_) {
    if (trainer.actor.host == host && !trainer.detached && trainer.failure.empty()) {
      NewTrainerProcess(trainer);
    }
  }
}

/// Messages under way to or from it are lost, and so are its connections.
void World::CutHost(int host) {
  std::set<int> nodes;
  for (std::size_t n = 0; n < agents_.size(); ++n) {
    if (agents_[n]->actor.host == host) nodes.insert(static_cast<int>(n));
  }
  cut_.insert(nodes.begin(), nodes.end());
  vanished_at_ = now_;
  At(now_ + dice_.Between(200, 2500), [this, nodes] {
    for (const auto& [id, actor] : actors_) {
      if (nodes.count(actor->node) != 0) ++actor->connection;
    }
    for (const int node : nodes) cut_.erase(node);
  });
}

/// Any subset of the processes, at the same time.
void World::Vanish() {
  vanished_at_ = now_;
  const double share = dice_.Chance(0.5) ? 0.2 : 0.5;
  const bool with_scheduler = dice_.Chance(0.4);
  if (dice_.Chance(0.2)) RebootHost(static_cast<int>(dice_.Below(faults_.hosts)));
  for (auto& agent : agents_) {
    if (dice_.Chance(share)) {
      EndNode(*agent, dice_.Chance(0.3));
    } else if (dice_.Chance(share / 2)) {
      Hit("agent crash");
      CrashAgent(*agent);
    }
    for (auto& worker : agent->workers) {
      if (dice_.Chance(share / 2)) KillWorkerProcess(*agent, *worker, true);
    }
  }
  for (SimTrainer& trainer : trainers_) {
    if (trainer.detached || !trainer.failure.empty() || !dice_.Chance(share / 2)) continue;
    Hit("trainer crash");
    NewTrainerProcess(trainer);
  }
  if (with_scheduler) CrashScheduler();
}

/// When a shard or batch came last, to it or to a rank that is behind it and goes first.
TimeMs World::ProgressOf(const SimTrainer& trainer) const {
  TimeMs last = trainer.progress_at;
  for (const SimTrainer& other : trainers_) {
    const bool first = other.stream == trainer.stream && !(trainer.next < other.next);
    if (first) last = std::max(last, other.counted_at);
  }
  return last;
}

/// I18: a stream with live workers, one of them idle, waits for ended processes no longer than the
/// contract allows, plus the time to register and to make a shard. Checked only without other
/// faults.
void World::WatchWaits() {
  constexpr TimeMs kMostMs = 3000 + 1000;
  for (auto& [id, actor] : actors_) {
    const bool mute = Cut(*actor) || now_ < actor->frozen_until;
    if (!mute) actor->mute_since = 0;
    if (mute && actor->mute_since == 0) actor->mute_since = now_;
    if (mute || !actor->alive || actor->well_since == 0) actor->well_since = now_ + 1;
  }
  At(now_ + 100, [this] { WatchWaits(); });
  if (!options_.ghosts || core_ == nullptr) return;
  TimeMs workers_since = now_;
  bool idle = false;  // else streams wait for one another
  for (const auto& agent : agents_) {
    for (const auto& worker : agent->workers) {
      const TimeMs since = std::max(agent->actor.well_since, worker->actor.well_since);
      workers_since = std::min(workers_since, since);
      idle = idle || (since < now_ && !IsBusy(*worker, audit_) && HasCore(*agent, audit_));
    }
  }
  for (SimTrainer& trainer : trainers_) {
    const SimJob* job = FindJob(trainer.stream);
    const bool over = trainer.detached || !trainer.failure.empty() || job == nullptr ||
                      trainer.consumed >= trainer.wanted || trainer.table == nullptr;
    const bool trains = !over && (trainer.table->FullSlot(trainer.table->next()).has_value() ||
                                  trainer.table->Exhausted());
    if (over || trains || !idle) trainer.progress_at = now_;
    const TimeMs from = std::max({ProgressOf(trainer), trainer.actor.well_since, workers_since,
                                  scheduler_started_, vanished_at_});
    if (now_ - from <= kMostMs) continue;
    return Violation(StrCat("I18: stream ", trainer.stream, " rank ", trainer.rank, " waits for ",
                            now_ - from, " ms", TrainersOf(trainer.stream)));
  }
}

}  // namespace patchbay::sim
