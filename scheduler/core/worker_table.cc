#include "scheduler/core/worker_table.h"

#include <algorithm>
#include <utility>

#include "scheduler/policy/limits.h"
#include "scheduler/policy/pace.h"

namespace patchbay::scheduler {
namespace {

constexpr Resources kNothing{0, 0, 0};

bool FitsBeside(std::uint64_t a, std::uint64_t b, std::uint64_t room) {
  return a <= room && b <= room - a;
}

int ClassOf(Numerics numerics) { return numerics == Numerics::kCuda ? 1 : 0; }

}  // namespace

Node& WorkerTable::NodeNamed(const std::string& name) {
  const auto [it, fresh] = nodes_.try_emplace(name);
  it->second.name = name;
  it->second.drained = barrier_.table().drained_nodes().count(name) != 0;
  if (fresh) Recall(it->second);
  return it->second;
}

void WorkerTable::Recall(Node& node) {
  const auto former = std::find_if(forgotten_.begin(), forgotten_.end(),
                                   [&](const Forgotten& one) { return one.name == node.name; });
  if (former == forgotten_.end()) return;
  node.dead_incarnations = std::move(former->agents);
  node.dead_workers = std::move(former->workers);
  forgotten_.erase(former);
}

Worker& WorkerTable::PlaceOn(Node& node, std::uint32_t index) {
  const auto it = node.workers.find(index);
  if (it != node.workers.end()) return workers_[it->second];
  if (unused_.empty()) {
    unused_.push_back(static_cast<WorkerId>(workers_.size()));
    workers_.emplace_back();
    open_keys_.emplace_back();
    look_at_.push_back(0);
  }
  const WorkerId id = unused_.back();
  unused_.pop_back();
  Worker& worker = workers_[id];
  worker.id = id;
  worker.node = node.name;
  worker.home = &node;
  worker.index = index;
  node.workers[index] = id;
  node.ids.Insert(id);
  return worker;
}

void WorkerTable::Forget(const std::string& name) {
  const auto node = nodes_.find(name);
  LeaveHost(node->second);
  Forgotten former{name, std::move(node->second.dead_incarnations),
                   std::move(node->second.dead_workers)};
  for (const auto& [index, id] : node->second.workers) {
    // Earlier workers of a place had ended when the last one began.
    if (workers_[id].incarnation != 0) former.workers.push_back(workers_[id].incarnation);
    workers_[id] = Worker{};
    workers_[id].id = id;
    open_keys_[id].freed = false;
    unused_.push_back(id);
  }
  nodes_.erase(node);
  while (former.workers.size() > kMaxWorkersPerNode) former.workers.pop_front();
  forgotten_.push_back(std::move(former));
  if (forgotten_.size() > kMaxForgottenNodes) forgotten_.pop_front();
}

void WorkerTable::LeaveHost(const Node& node) {
  const auto host = hosts_.find(node.host_identity);
  if (host == hosts_.end()) return;
  host->second.erase(node.name);
  if (host->second.empty()) hosts_.erase(host);
}

void WorkerTable::SetHost(Node& node, std::string&& host_identity) {
  LeaveHost(node);
  node.host_identity = std::move(host_identity);
  hosts_[node.host_identity].emplace(node.name, &node);
}

const WorkerTable::Nodes* WorkerTable::NodesOnHost(const std::string& host_identity) const {
  const auto host = hosts_.find(host_identity);
  return host == hosts_.end() ? nullptr : &host->second;
}

Status WorkerTable::CheckReach(const protocol::TrainerEndpoint& endpoint, JobId stream) const {
  const std::string& host = endpoint.host_identity;
  const Nodes* own = NodesOnHost(host);
  const bool at_home = own != nullptr && !own->empty();
  const bool stranger = std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return DifferInUserOnly(entry.second.host_identity, host);
  });
  if (!stranger || at_home || !endpoint.remote_address.empty()) return absl::OkStatus();
  return FailedPrecondition("attach trainer: stream ", stream,
                            ": the cluster's workers on this machine run as another user, and "
                            "users share no memory: run the trainer as the one who ran `patchbay "
                            "up` or `join` here, or join a cluster that listens on an IP address");
}

bool WorkerTable::IsLocal(const Worker& worker, const protocol::TrainerEndpoint& trainer) const {
  const std::string& host = NodeOf(worker).host_identity;
  return !host.empty() && host == trainer.host_identity;
}

bool WorkerTable::IsSuspect(const Worker& worker) const {
  const Node& node = NodeOf(worker);
  return event_.now - node.last_seen >= options_.suspect_ms ||
         (worker.sends_heartbeats && event_.now - worker.last_seen >= options_.suspect_ms);
}

bool WorkerTable::CanLease(const Worker& worker) const {
  if (worker.state != WorkerState::kUp || worker.peer == 0) return false;
  const Node& node = NodeOf(worker);
  return worker.known_sequence <= barrier_.durable() && node.registered && node.agent != 0 &&
         !node.draining && !node.drained && node.agent_incarnation == worker.agent_incarnation &&
         !IsSuspect(worker);
}

bool WorkerTable::NodeHasRoom(Worker& worker, const Resources& need) {
  Node& node = NodeOf(worker);
  const Resources kept = KeptForReserved(node, worker);
  if (Fits(need, worker.assigned) && kept == kNothing) return true;
  const Resources then = Largest(worker.assigned, need);
  const Resources total{
      node.assigned.cpu_millis - worker.assigned.cpu_millis + then.cpu_millis + kept.cpu_millis,
      node.assigned.gpus - worker.assigned.gpus + then.gpus + kept.gpus,
      node.assigned.memory_bytes - worker.assigned.memory_bytes + then.memory_bytes +
          kept.memory_bytes};
  const bool more = need.memory_bytes > worker.assigned.memory_bytes;
  const bool leaves =
      !more ||
      (FitsBeside(worker.planning_bytes, need.memory_bytes, worker.capacity.memory_bytes) &&
       FitsBeside(KeptForPlanning(node, worker), total.memory_bytes, node.capacity.memory_bytes));
  if (leaves && Fits(total, node.capacity)) return true;
  node.refused = true;
  return false;
}

std::uint64_t WorkerTable::KeptForPlanning(const Node& node, const Worker& worker) {
  if (node.assigned.memory_bytes == worker.assigned.memory_bytes) return node.planning_bytes;
  return std::max(node.planning_bytes,
                  PlanningReserve(node.capacity.memory_bytes, node.workers.size()));
}

Resources WorkerTable::KeptForReserved(const Node& node, const Worker& worker) const {
  if (reserved_ == kNoWorker || reserved_ == worker.id) return kNothing;
  const Worker& reserved = workers_[reserved_];
  if (reserved.node != node.name || !Fits(reserved_need_, node.capacity)) return kNothing;
  const Resources then = Largest(reserved.assigned, reserved_need_);
  return {then.cpu_millis - reserved.assigned.cpu_millis, then.gpus - reserved.assigned.gpus,
          then.memory_bytes - reserved.assigned.memory_bytes};
}

bool WorkerTable::HasRoomToPlan(Worker& worker, const Resources& need) {
  Node& node = NodeOf(worker);
  const std::uint64_t then = std::max(
      {worker.planning_bytes, need.memory_bytes, PlanningReserve(worker.capacity.memory_bytes, 1)});
  if (then == worker.planning_bytes) return true;
  const std::uint64_t total = node.planning_bytes - worker.planning_bytes + then;
  if (FitsBeside(then, worker.assigned.memory_bytes, worker.capacity.memory_bytes) &&
      FitsBeside(total, node.assigned.memory_bytes, node.capacity.memory_bytes)) {
    return true;
  }
  node.refused = true;
  return false;
}

void WorkerTable::Reindex(Worker& worker) {
  OpenKeys& keys = open_keys_[worker.id];
  const int kind = ClassOf(worker.numerics);
  const bool may = CanLease(worker) && !worker.RunsSuspect() && !worker.reserved;
  const bool may_make = may || (worker.reserved && reserved_takes_shards_ && CanLease(worker));
  const std::uint32_t queued = worker.work.tasks;
  const auto shards = static_cast<std::uint32_t>(worker.shards.size());
  const bool task_room = may && shards == 0 && QueueHasRoom(queued, worker.work.queued_us, 0);
  const bool shard_room = may_make && !keys.kept && shards < worker.shard_pace.Depth();
  const bool may_still = std::exchange(keys.may, may) && may;
  if (!may_still) LookBy(worker.id, event_.now);
  Rekey(task_open_, worker.id, keys.task, task_room ? queued : kNotOpen);
  // Planning waits for its own lane alone, whatever else the worker holds.
  const LaneLoad& planning = worker.planning;
  const bool plan_room = may && QueueHasRoom(planning.tasks, planning.queued_us, 0);
  Rekey(planning_open_, worker.id, keys.planning, plan_room ? planning.tasks : kNotOpen);
  for (const int one : {1 - kind, kind}) {
    if (one != kind && one != keys.kind) continue;
    Rekey(shard_open_[one], worker.id, keys.shard, one == kind && shard_room ? shards : kNotOpen);
  }
  keys.kind = kind;
}

/// The worker is in the set under `to`, kNotOpen: no longer.
void WorkerTable::Rekey(OpenWorkers& open, WorkerId id, std::uint32_t& key, std::uint32_t to) {
  const std::uint32_t from = std::exchange(key, to);
  if (from == to) return;
  if (from != kNotOpen) open.erase({from, id});
  if (to != kNotOpen) open.insert({to, id});
}

const std::vector<WorkerId>& WorkerTable::TakeFreed() {
  taken_.clear();
  for (const WorkerId id : freed_) {
    if (std::exchange(open_keys_[id].freed, false)) taken_.push_back(id);
  }
  freed_.clear();
  std::sort(taken_.begin(), taken_.end());
  return taken_;
}

std::vector<WorkerId> WorkerTable::TakeReassigned() {
  for (const WorkerId id : reassigned_) open_keys_[id].reassigned = false;
  return std::exchange(reassigned_, {});
}

Amounts WorkerTable::Up() const {
  Amounts up = {};
  for (const auto& [name, node] : nodes_) {
    const Amounts has = AmountsOf(node.capacity);
    for (std::size_t of = 0; of < kResources && node.registered && node.agent != 0; ++of) {
      up[of] += has[of];
    }
  }
  return up;
}

void WorkerTable::ReindexNode(Node& node) {
  for (const auto& [index, id] : node.workers) Reindex(workers_[id]);
}

Resources WorkerTable::Occupied(const Worker& worker) const {
  const Resources held = worker.work.occupancy.Occupied();
  return IsUnheard(worker) ? Largest(worker.assigned, held) : held;
}

std::uint64_t WorkerTable::PlanningBytes(const Worker& worker) const {
  const std::uint64_t held = worker.planning.tasks == 0
                                 ? 0
                                 : std::max(worker.planning.occupancy.Occupied().memory_bytes,
                                            PlanningReserve(worker.capacity.memory_bytes, 1));
  return IsUnheard(worker) ? std::max(worker.planning_bytes, held) : held;
}

void WorkerTable::Reassign(Worker& worker) {
  Node& node = NodeOf(worker);
  const Resources before = worker.assigned;
  const std::uint64_t planned = worker.planning_bytes;
  worker.assigned = Occupied(worker);
  worker.planning_bytes = PlanningBytes(worker);
  node.planning_bytes += worker.planning_bytes - planned;
  node.assigned.cpu_millis += worker.assigned.cpu_millis - before.cpu_millis;
  node.assigned.gpus += worker.assigned.gpus - before.gpus;
  node.assigned.memory_bytes += worker.assigned.memory_bytes - before.memory_bytes;
  if (worker.work.tasks != 0 && IsKept(worker.id)) Unkeep(worker);
  Reindex(worker);
  LookAt(worker.id);
  if (!std::exchange(open_keys_[worker.id].reassigned, true)) reassigned_.push_back(worker.id);
  const bool freed = !Fits(before, worker.assigned) || worker.planning_bytes < planned;
  if (!node.refused || !freed) return;
  node.refused = false;
  for (const auto& [index, id] : node.workers) LookAt(id);
}

void WorkerTable::Keep(Worker& worker) {
  open_keys_[worker.id].kept = true;
  kept_.insert(worker.id);
  Reindex(worker);
  LookAt(worker.id);
}

void WorkerTable::Unkeep(Worker& worker) {
  open_keys_[worker.id].kept = false;
  kept_.erase(worker.id);
  Reindex(worker);
  LookAt(worker.id);
}

void WorkerTable::Reserve(Worker& worker, const Resources& need, SuspectPlace place) {
  if (reserved_ != kNoWorker && reserved_ != worker.id) {
    Worker& before = workers_[reserved_];
    if (!before.IsPlanning() || worker.IsPlanning()) return;
    Unreserve(before);
  }
  reserved_again_ = true;
  const bool takes_shards = worker.IsPlanning() && place == SuspectPlace::kEmptyWorker;
  const bool fresh = reserved_ != worker.id;
  if (!fresh && (takes_shards || !reserved_takes_shards_)) return;
  reserved_takes_shards_ = takes_shards;
  if (fresh) reserved_need_ = need;
  reserved_ = worker.id;
  worker.reserved = true;
  Reindex(worker);
}

void WorkerTable::Unreserve(Worker& worker) {
  if (reserved_ != worker.id) return;
  reserved_ = kNoWorker;
  worker.reserved = false;
  Reindex(worker);
  Node& node = NodeOf(worker);
  node.refused = false;
  for (const auto& [index, id] : node.workers) LookAt(id);
}

void WorkerTable::TickReserved() {
  const bool again = std::exchange(reserved_again_, false);
  if (reserved_ != kNoWorker && !again) Unreserve(workers_[reserved_]);
}

Worker* WorkerTable::Reserved() {
  if (reserved_ == kNoWorker || !CanLease(workers_[reserved_])) return nullptr;
  return &workers_[reserved_];
}

}  // namespace patchbay::scheduler
