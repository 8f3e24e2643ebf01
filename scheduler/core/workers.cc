// Agents and workers: who is there, what they hold, and when it is taken from them.
#include <algorithm>
#include <utility>

#include "scheduler/core/machine.h"

namespace patchbay::scheduler {
namespace {

/// A lease that has not shown progress lives on while its worker works on others, for so many lease
/// times.
constexpr TimeMs kUnstartedLeases = 6;

bool Contains(const std::deque<std::uint64_t>& incarnations, std::uint64_t one) {
  return std::find(incarnations.begin(), incarnations.end(), one) != incarnations.end();
}

void Remember(std::deque<std::uint64_t>& incarnations, std::uint64_t one) {
  incarnations.push_back(one);
  if (incarnations.size() > kMaxDeadIncarnations) incarnations.pop_front();
}

int ClassOf(protocol::Numerics numerics) { return numerics == protocol::Numerics::kCuda ? 1 : 0; }

}  // namespace

Node& Core::Machine::NodeNamed(const std::string& name) {
  Node& node = nodes[name];
  node.name = name;
  return node;
}

Worker* Core::Machine::WorkerOf(const Request& request) {
  const Peer& peer = peers.at(request.peer);
  if (peer.worker == kNoWorker || workers[peer.worker].peer != request.peer ||
      workers[peer.worker].state == WorkerState::kGone) {
    Refuse(request, absl::FailedPreconditionError("receive message: register the worker first"));
    return nullptr;
  }
  Worker& worker = workers[peer.worker];
  if (worker.state == WorkerState::kCondemned) {
    Refuse(request,
           absl::AbortedError("receive message: this worker's leases expired; it is to end"));
    return nullptr;
  }
  worker.last_seen = now;
  return &worker;
}

void Core::Machine::On(const Request& request, protocol::RegisterAgent&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return Refuse(request, absl::PermissionDeniedError(
                               StrCat("register agent: ", key, ": the key is for another node")));
  }
  if (nodes.size() >= kMaxNodes && nodes.count(key) == 0) {
    return Refuse(request, absl::ResourceExhaustedError("register agent: too many nodes"));
  }
  Node& node = NodeNamed(key);
  if (Contains(node.dead_incarnations, message.agent_incarnation)) {
    return Refuse(request, absl::AbortedError("register agent: a newer agent has this node"));
  }
  if (node.agent_incarnation != message.agent_incarnation) {
    if (node.agent_incarnation != 0) Remember(node.dead_incarnations, node.agent_incarnation);
    node.agent_incarnation = message.agent_incarnation;
    node.draining = false;
    AgentRestarted(key, message.agent_incarnation);
  }
  node.agent = request.peer;
  node.registered = true;
  node.last_seen = now;
  hosts[node.host_identity].erase(key);
  node.host_identity = std::move(message.host_identity);
  hosts[node.host_identity].insert(key);
  node.cpus = message.cpus;
  node.gpus = std::move(message.gpus);
  node.capacity = {message.cpus * 1000, static_cast<std::uint32_t>(node.gpus.size()),
                   message.memory_bytes};
  peers.at(request.peer).agent_of = key;
  for (const auto& [index, id] : node.workers) Reindex(workers[id]);
  pushed_ready = shards_changed = true;
  Answer(request, protocol::AgentRegistered{table.incarnation(), options.heartbeat_ms});
}

/// Workers end with their agent, so those of another agent of this node are dead.
void Core::Machine::AgentRestarted(const std::string& name, std::uint64_t agent_incarnation) {
  for (const auto& [index, id] : nodes.at(name).workers) {
    Worker& worker = workers[id];
    if (worker.state != WorkerState::kGone && worker.agent_incarnation != agent_incarnation) {
      WorkerDead(worker, false);
    }
  }
  std::vector<WorkerPlace> dead;
  for (const auto& [place, entry] : unaccounted) {
    if (place.first == name && entry.agent_incarnation != agent_incarnation) dead.push_back(place);
  }
  for (const WorkerPlace& place : dead) {
    Emit(WorkerGoneRecord{place.first, place.second});
    AccountFor(place);
  }
}

void Core::Machine::On(const Request& request, protocol::RegisterWorker&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return Refuse(request, absl::PermissionDeniedError(
                               StrCat("register worker: ", key, ": the key is for another node")));
  }
  if (message.index >= kMaxWorkersPerNode || (nodes.size() >= kMaxNodes && nodes.count(key) == 0)) {
    return Refuse(request, absl::ResourceExhaustedError("register worker: too many workers"));
  }
  Node& node = NodeNamed(key);
  Worker& worker = *PlaceOnNode(node, message.index);
  if (message.worker_incarnation == 0 ||
      Contains(worker.dead_incarnations, message.worker_incarnation) ||
      Contains(node.dead_incarnations, message.agent_incarnation)) {
    // It outlived a silence of its node: its end makes room for the next.
    if (node.registered) {
      Send(node.agent, 0, protocol::KillWorker{message.index, message.worker_incarnation});
    }
    return Refuse(request, absl::AbortedError("register worker: this process was declared dead"));
  }
  if (worker.state == WorkerState::kCondemned && worker.incarnation == message.worker_incarnation) {
    return Refuse(request, absl::AbortedError("register worker: its leases expired; it is to end"));
  }
  if (worker.state != WorkerState::kGone && worker.incarnation != message.worker_incarnation) {
    WorkerDead(worker, worker.state != WorkerState::kCondemned);
  }
  const bool moved = worker.peer != request.peer;
  worker.peer = request.peer;
  worker.last_seen = now;
  peers.at(request.peer).worker = worker.id;
  if (worker.state == WorkerState::kGone) StartWorker(worker, message);
  Reoffer(worker, message.held, moved);
  Reindex(worker);
  pushed_ready = shards_changed = true;
  Answer(request, protocol::WorkerRegistered{table.incarnation(),
                                             static_cast<std::uint32_t>(options.lease_ms)});
}

Worker* Core::Machine::PlaceOnNode(Node& node, std::uint32_t index) {
  const auto it = node.workers.find(index);
  if (it != node.workers.end()) return &workers[it->second];
  const auto id = static_cast<WorkerId>(workers.size());
  Worker& worker = workers.emplace_back();
  open_keys.emplace_back();
  worker.id = id;
  worker.node = node.name;
  worker.index = index;
  node.workers[index] = id;
  return &worker;
}

/// A process fills the place.
void Core::Machine::StartWorker(Worker& worker, const protocol::RegisterWorker& message) {
  worker.state = WorkerState::kUp;
  worker.incarnation = message.worker_incarnation;
  worker.agent_incarnation = message.agent_incarnation;
  worker.pid = message.pid;
  worker.numerics = message.numerics;
  worker.capacity = message.capacity;
  worker.sends_heartbeats = false;
  worker.solo = worker.reserved = false;
  worker.barred.clear();
  worker.streams_fetched.clear();
  worker.shard_pace = {};
  worker.busy_since = worker.shard_since = worker.progress_at = now;
  worker.drain_peer = 0;
  const WorkerPlace place{worker.node, worker.index};
  const auto known = table.known_workers().find(place);
  const auto entry = unaccounted.find(place);
  if (entry != unaccounted.end() &&
      entry->second.worker_incarnation != message.worker_incarnation) {
    AccountFor(place);
  }
  if (known == table.known_workers().end() ||
      known->second.worker_incarnation != message.worker_incarnation) {
    Emit(WorkerSeenRecord{worker.node, worker.index, worker.incarnation, worker.agent_incarnation,
                          worker.pid, NodeOf(worker).host_identity});
    gated_workers.emplace_back(last_sequence, worker.id);
  }
  worker.known_sequence = last_sequence;
}

/// Settles what a worker says it holds with what the table says. `moved`: it has a new connection,
/// so batch leases it does not name were lost on the way.
void Core::Machine::Reoffer(Worker& worker, const std::vector<protocol::HeldLease>& held,
                            bool moved) {
  std::set<LeaseNumber> named, former_shards;
  for (const protocol::HeldLease& one : held) {
    named.insert(one.lease);
    const auto it = leases.find(one.lease);
    if (it != leases.end() && it->second.worker == worker.id) continue;
    if (one.is_shard && one.lease.incarnation < table.incarnation())
      former_shards.insert(one.lease);
    if (!one.is_shard && one.lease.incarnation < table.incarnation() && it == leases.end()) {
      AdoptTask(worker, one);
    }
    if (leases.count(one.lease) == 0) revokes[worker.id].push_back(one.lease);
  }
  if (moved) {
    const std::set<LeaseNumber> before = worker.tasks;
    for (const LeaseNumber& number : before) {
      if (named.count(number) != 0) continue;
      const TaskId task = leases.at(number).task;
      Revoke(leases.at(number));
      DropTaskLease(number);
      Enqueue(task);
    }
  }
  const auto entry = unaccounted.find({worker.node, worker.index});
  if (entry != unaccounted.end() && entry->second.worker_incarnation == worker.incarnation) {
    entry->second.registered = true;
    entry->second.shards = std::move(former_shards);
    if (entry->second.shards.empty()) AccountFor(entry->first);
  }
  Reassign(worker);
}

/// A task leased by a former incarnation goes on under its old number.
void Core::Machine::AdoptTask(Worker& worker, const protocol::HeldLease& held) {
  Task* task = table.Find(held.task);
  if (task == nullptr || IsEnded(task->state) || task->lease != LeaseNumber{}) return;
  const Job& job = *table.Find(held.task.job);
  if (held.lease <= job.void_leases) return;
  if (!job.MayRun(*task) || worker.tasks.size() >= kMaxQueueDepth) return;
  if (worker.solo || task->suspect) return;  // a suspect runs alone
  if (!NodeHasRoom(worker, task->spec.resources)) return;
  Lease lease;
  lease.number = held.lease;
  lease.worker = worker.id;
  lease.worker_incarnation = worker.incarnation;
  lease.granted_at = now;
  lease.deadline = now + options.lease_ms;
  lease.task = held.task;
  lease.estimate_us = task_pace.EstimateUs(task->spec.op, task->spec.weight);
  task->state = TaskState::kLeased;
  task->lease = held.lease;
  ++table.Find(held.task.job)->tasks_running;
  if (worker.tasks.empty()) worker.next_expiry = lease.deadline;
  worker.tasks.insert(held.lease);
  worker.occupancy.Add(task->spec.resources);
  worker.queued_us += lease.estimate_us;
  leases.emplace(held.lease, lease);
  Reassign(worker);
}

/// A worker of a former incarnation's journal is dead or holds nothing of it any more.
void Core::Machine::AccountFor(const WorkerPlace& place) {
  const WorkerPlace key = place;  // `place` may live in what is erased
  if (unaccounted.erase(key) == 0) return;
  shards_changed = true;
}

void Core::Machine::On(const Request& request, protocol::RenewLeases&& message) {
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  protocol::LeasesRenewed answer;
  std::set<LeaseNumber> named;
  for (const protocol::RenewLeases::Item& item : message.items) {
    named.insert(item.lease);
    const auto it = leases.find(item.lease);
    if (it == leases.end() || it->second.worker != worker->id ||
        (it->second.is_shard && it->second.phase != ShardPhase::kMaking)) {
      answer.unknown.push_back(item.lease);
    } else if (item.progress > it->second.progress) {
      it->second.progress = item.progress;
      it->second.deadline = now + options.lease_ms;
      worker->progress_at = now;
    }
  }
  const auto entry = unaccounted.find({worker->node, worker->index});
  if (entry != unaccounted.end() && entry->second.registered) {
    std::erase_if(entry->second.shards,
                  [&](const LeaseNumber& lease) { return named.count(lease) == 0; });
    if (entry->second.shards.empty()) AccountFor(entry->first);
  }
  Answer(request, std::move(answer));
}

void Core::Machine::On(const Request& request, protocol::WorkerExited&& message) {
  const Peer& peer = peers.at(request.peer);
  if (message.node != request.identity->key_name || peer.agent_of != message.node ||
      NodeNamed(message.node).agent != request.peer) {
    return Refuse(request,
                  absl::PermissionDeniedError("report worker's end: not the agent of that node"));
  }
  Node& node = NodeNamed(message.node);
  node.last_seen = now;
  const auto entry = unaccounted.find({message.node, message.index});
  if (entry != unaccounted.end() &&
      entry->second.worker_incarnation == message.worker_incarnation) {
    Emit(WorkerGoneRecord{message.node, message.index});
    AccountFor(entry->first);
  }
  if (message.worker_incarnation != 0 && message.index < kMaxWorkersPerNode) {
    // Its registration may still be on the way, on another connection.
    Worker& worker = *PlaceOnNode(node, message.index);
    if (worker.state != WorkerState::kGone && worker.incarnation == message.worker_incarnation) {
      WorkerDead(worker, worker.state != WorkerState::kCondemned);
    } else if (!Contains(worker.dead_incarnations, message.worker_incarnation)) {
      Remember(worker.dead_incarnations, message.worker_incarnation);
    }
  }
  Answer(request, protocol::WorkerExitSeen{});
}

/// The process has ended: what it held is to be made again.
void Core::Machine::WorkerDead(Worker& worker, bool counts) {
  std::vector<LeaseNumber> held(worker.tasks.begin(), worker.tasks.end());
  held.insert(held.end(), worker.shards.begin(), worker.shards.end());
  Remember(worker.dead_incarnations, worker.incarnation);
  worker.state = WorkerState::kGone;
  worker.peer = 0;
  if (reserved == worker.id) reserved = kNoWorker;
  worker.reserved = false;
  if (!held.empty()) Blame(held, counts);
  Emit(WorkerGoneRecord{worker.node, worker.index});
  AccountFor({worker.node, worker.index});
  Reassign(worker);
  FinishDrains(worker);
}

/// Takes the leases back from a worker that is dead or condemned, and says what that means for what
/// it ran: nothing unless `counts`; a death if it was one lease alone; else all are suspects.
void Core::Machine::Blame(const std::vector<LeaseNumber>& held, bool counts) {
  const bool alone = held.size() == 1;
  for (const LeaseNumber& number : held) {
    Lease& lease = leases.at(number);
    if (lease.is_shard) {
      if (Shard* shard = FindShard(lease); shard != nullptr && counts) {
        shard->suspect = true;
        shard->solo_deaths += alone ? 1 : 0;
      }
      Fence(lease, lease.worker_pid);
      continue;
    }
    const TaskId task = lease.task;
    DropTaskLease(number);
    if (counts) BlameTask(task, alone);
    Enqueue(task);
  }
}

void Core::Machine::BlameTask(const TaskId& id, bool alone) {
  Task& task = *table.Find(id);
  if (IsEnded(task.state)) return;
  task.suspect = true;
  if (!alone) return;
  ++task.solo_deaths;
  LogLine(id.job, StrCat("task ", id.index, ": its worker died, ", int{task.solo_deaths}, " of ",
                         kMaxSoloDeaths));
  if (task.solo_deaths < kMaxSoloDeaths) return;
  FailTask(id,
           {static_cast<std::int32_t>(absl::StatusCode::kInternal),
            StrCat("run task: ", id.ToString(), ": ended ", kMaxSoloDeaths, " workers")},
           true);
}

void Core::Machine::Revoke(const Lease& lease) { revokes[lease.worker].push_back(lease.number); }

bool Core::Machine::IsSuspect(const Worker& worker) const {
  const Node& node = nodes.at(worker.node);
  return now - node.last_seen >= options.suspect_ms ||
         (worker.sends_heartbeats && now - worker.last_seen >= options.suspect_ms);
}

bool Core::Machine::CanLease(const Worker& worker) const {
  const Node& node = nodes.at(worker.node);
  return worker.state == WorkerState::kUp && worker.peer != 0 && worker.known_sequence <= durable &&
         node.registered && node.agent != 0 && !node.draining &&
         node.agent_incarnation == worker.agent_incarnation && !IsSuspect(worker);
}

void Core::Machine::Reindex(Worker& worker) {
  OpenKeys& keys = open_keys[worker.id];
  const int kind = ClassOf(worker.numerics);
  const bool may = CanLease(worker) && !worker.solo && !worker.reserved;
  const auto queued = static_cast<std::uint32_t>(worker.tasks.size());
  const auto shards = static_cast<std::uint32_t>(worker.shards.size());
  const bool task_room = may && shards == 0 && QueueHasRoom(queued, worker.queued_us, 0);
  const bool shard_room = may && shards < worker.shard_pace.Depth();
  Node& node = NodeOf(worker);
  if (keys.task != kNotOpen) task_open.erase({keys.task, worker.id});
  if (keys.shard != kNotOpen) {
    shard_open[keys.kind].erase({keys.shard, worker.id});
    node.shard_open[keys.kind].erase({keys.shard, worker.id});
  }
  keys = {task_room ? queued : kNotOpen, shard_room ? shards : kNotOpen, kind};
  if (task_room) task_open.insert({queued, worker.id});
  if (!shard_room) return;
  shard_open[kind].insert({shards, worker.id});
  node.shard_open[kind].insert({shards, worker.id});
}

/// The worker's leases changed: what it occupies, and what it may be given.
void Core::Machine::Reassign(Worker& worker) {
  Node& node = NodeOf(worker);
  const Resources before = worker.assigned;
  worker.assigned = worker.occupancy.Occupied();
  node.assigned.cpu_millis += worker.assigned.cpu_millis - before.cpu_millis;
  node.assigned.gpus += worker.assigned.gpus - before.gpus;
  node.assigned.memory_bytes += worker.assigned.memory_bytes - before.memory_bytes;
  if (worker.tasks.empty() && worker.shards.empty()) worker.solo = false;
  Reindex(worker);
  dirty_workers.insert(worker.id);
  if (!node.refused || Fits(before, worker.assigned)) return;
  node.refused = false;
  for (const auto& [index, id] : node.workers) dirty_workers.insert(id);
}

void Core::Machine::TickWorkers() {
  for (Worker& worker : workers) {
    if (worker.state == WorkerState::kGone) continue;
    if (worker.state == WorkerState::kCondemned) {
      if (now - worker.kill_sent >= options.resend_ms) SendKill(worker);
    } else {
      ExpireLeases(worker);
    }
    std::erase_if(worker.barred, [&](const auto& bar) { return bar.second <= now; });
    Reindex(worker);
  }
  if (reserved != kNoWorker && solo_ready.empty()) Unreserve();
  for (auto& [name, node] : nodes) {
    if (!node.registered || now - node.last_seen < options.forget_node_ms) continue;
    node.registered = false;
    node.agent = 0;
    for (const auto& [index, id] : node.workers) {
      if (workers[id].state != WorkerState::kGone) WorkerDead(workers[id], false);
    }
  }
}

void Core::Machine::Unreserve() {
  if (reserved == kNoWorker) return;
  Worker& worker = workers[reserved];
  reserved = kNoWorker;
  worker.reserved = false;
  Reindex(worker);
  dirty_workers.insert(worker.id);
}

void Core::Machine::TickRecovery() {
  if (!unaccounted.empty() && now >= recovery_kill_at) {
    recovery_kill_at = now + options.resend_ms;
    for (const auto& [place, entry] : unaccounted) {
      const auto node = nodes.find(place.first);
      if (node == nodes.end() || !node->second.registered) continue;
      if (entry.registered && now < recovery_until) {
        auto& again = revokes[node->second.workers.at(place.second)];
        again.insert(again.end(), entry.shards.begin(), entry.shards.end());
        continue;
      }
      Send(node->second.agent, 0, protocol::KillWorker{place.second, entry.worker_incarnation});
    }
  }
  if (held_back.empty() || Recovering()) return;
  for (const TaskId& id : held_back) Enqueue(id);
  held_back.clear();
}

void Core::Machine::ExpireLeases(Worker& worker) {
  if ((worker.tasks.empty() && worker.shards.empty()) || now < worker.next_expiry) return;
  TimeMs first = INT64_MAX;
  const auto look = [&](const LeaseNumber& number) {
    const Lease& lease = leases.at(number);
    TimeMs deadline = lease.deadline;
    if (lease.progress == 0) {
      const TimeMs most = lease.granted_at + kUnstartedLeases * options.lease_ms;
      deadline = std::max(deadline, std::min(worker.progress_at + options.lease_ms, most));
    }
    first = std::min(first, deadline);
  };
  for (const LeaseNumber& number : worker.tasks) look(number);
  for (const LeaseNumber& number : worker.shards) look(number);
  worker.next_expiry = first;
  if (first <= now) Condemn(worker);
}

/// A lease expired. Whoever still talks is stuck in what it runs; whoever is silent is frozen or
/// cut off, which says nothing about what it ran.
void Core::Machine::Condemn(Worker& worker) {
  ++counters.leases_expired;
  worker.state = WorkerState::kCondemned;
  std::vector<LeaseNumber> held(worker.tasks.begin(), worker.tasks.end());
  held.insert(held.end(), worker.shards.begin(), worker.shards.end());
  Blame(held, now - worker.last_seen < options.suspect_ms);
  if (reserved == worker.id) Unreserve();
  Reassign(worker);
  SendKill(worker);
}

void Core::Machine::SendKill(Worker& worker) {
  worker.kill_sent = now;
  const Node& node = NodeOf(worker);
  if (node.registered) Send(node.agent, 0, protocol::KillWorker{worker.index, worker.incarnation});
}

void Core::Machine::On(const Request& request, protocol::Drain&&) {
  const Peer& peer = peers.at(request.peer);
  if (!peer.agent_of.empty() && nodes.at(peer.agent_of).agent == request.peer) {
    Node& node = nodes.at(peer.agent_of);
    node.draining = true;
    node.drain_request = request.request_id;
    node.last_seen = now;
    for (const auto& [index, id] : node.workers) Reindex(workers[id]);
    return FinishNodeDrain(node);
  }
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  worker->state = WorkerState::kDraining;
  worker->drain_peer = request.peer;
  worker->drain_request = request.request_id;
  Reindex(*worker);
  FinishDrains(*worker);
}

/// Answers Drain once nothing is held any more.
void Core::Machine::FinishDrains(Worker& worker) {
  if (worker.drain_peer != 0 && worker.tasks.empty() && worker.shards.empty()) {
    SendDurable(worker.drain_peer, worker.drain_request, protocol::Drained{});
    worker.drain_peer = 0;
  }
  FinishNodeDrain(NodeOf(worker));
}

void Core::Machine::FinishNodeDrain(Node& node) {
  if (!node.draining || node.drain_request == 0) return;
  for (const auto& [index, id] : node.workers) {
    if (!workers[id].tasks.empty() || !workers[id].shards.empty()) return;
  }
  SendDurable(node.agent, node.drain_request, protocol::Drained{});
  node.drain_request = 0;
}

}  // namespace patchbay::scheduler
