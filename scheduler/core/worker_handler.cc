#include "scheduler/core/worker_handler.h"

#include <algorithm>
#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// The leases of a worker that is being killed have been dealt with already.
WorkerEnd EndUnlessCondemned(const Worker& worker, WorkerEnd end) {
  return worker.state == WorkerState::kCondemned ? WorkerEnd::kUnrelated : end;
}

std::size_t TextBytes(const protocol::RegisterAgent& message) {
  std::size_t bytes = message.host_identity.size() + message.host_name.size();
  for (const protocol::Gpu& gpu : message.gpus) {
    bytes += sizeof(gpu) + gpu.uuid.size() + gpu.name.size();
  }
  return bytes;
}

Status TooManyNodes(std::string_view doing, const std::string& node) {
  return ResourceExhausted(doing, ": ", node, ": there are ", kMaxNodes, " nodes already");
}

}  // namespace

bool WorkerHandler::HasRoomFor(const std::string& node) {
  if (worker_table_.nodes().size() < kMaxNodes || worker_table_.nodes().count(node) != 0)
    return true;
  std::set<WorkerId> held_from;
  for (const auto& [number, lease] : book_.leases()) held_from.insert(lease->worker);
  const Node* longest = nullptr;
  for (const auto& [name, one] : worker_table_.nodes()) {
    const bool longer = longest == nullptr || one.last_seen < longest->last_seen;
    if (longer && HoldsNothing(one, held_from)) longest = &one;
  }
  if (longest == nullptr) return false;
  worker_table_.Forget(std::string(longest->name));
  return true;
}

bool WorkerHandler::HoldsNothing(const Node& node, const std::set<WorkerId>& held_from) const {
  if (node.registered || node.agent != 0) return false;
  const auto& known = barrier_.table().known_workers();
  const auto first = known.lower_bound({node.name, 0});
  if (first != known.end() && first->first.first == node.name) return false;
  return std::all_of(node.workers.begin(), node.workers.end(), [&](const auto& place) {
    const Worker& worker = worker_table_.at(place.second);
    return worker.state == WorkerState::kGone && worker.known_sequence <= barrier_.durable() &&
           held_from.count(worker.id) == 0;
  });
}

void WorkerHandler::LookAgain() {
  batch_.LookAgain();
  streams_.MarkAllChanged();
}

void WorkerHandler::On(const Request& request, protocol::RegisterAgent&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return barrier_.Refuse(
        request, PermissionDenied("register agent: ", key, ": the key is for another node"));
  }
  if (const std::size_t bytes = TextBytes(message); bytes > kMaxNodeTextBytes) {
    return barrier_.Refuse(
        request, InvalidArgument("register agent: ", key, ": its host and GPUs take ", bytes,
                                 " bytes, more than ", kMaxNodeTextBytes));
  }
  if (!HasRoomFor(key)) return barrier_.Refuse(request, TooManyNodes("register agent", key));
  Node& node = worker_table_.NodeNamed(key);
  if (Contains(node.dead_incarnations, message.agent_incarnation)) {
    return barrier_.Refuse(request, Aborted("register agent: a newer agent has this node"));
  }
  if (IsOnAnotherMachine(node, message)) {
    return barrier_.Refuse(
        request, AlreadyExists("register agent: key ", key, " is in use on ", node.host_name,
                               ": one key is for one machine, make another with `patchbay key new "
                               "NAME --role worker`"));
  }
  if (node.agent_incarnation != message.agent_incarnation) {
    if (node.agent_incarnation != 0) Remember(node.dead_incarnations, node.agent_incarnation);
    node.agent_incarnation = message.agent_incarnation;
    node.draining = false;
    AgentRestarted(node, message.agent_incarnation);
  }
  node.agent = request.peer;
  node.registered = true;
  node.last_seen = event_.now;
  worker_table_.SetHost(node, std::move(message.host_identity));
  node.host_name = std::move(message.host_name);
  node.cpus = message.cpus;
  node.gpus = std::move(message.gpus);
  node.capacity = {message.cpus * 1000, static_cast<std::uint32_t>(node.gpus.size()),
                   message.memory_bytes};
  peers_.BindAgent(request.peer, key);
  worker_table_.ReindexNode(node);
  LookAgain();
  barrier_.Answer(request,
                  protocol::AgentRegistered{barrier_.table().incarnation(), options_.heartbeat_ms});
}

/// Whether the node's agent lives, and on a machine that is not this one.
bool WorkerHandler::IsOnAnotherMachine(const Node& node,
                                       const protocol::RegisterAgent& message) const {
  return node.agent != 0 && node.registered && node.host_identity != message.host_identity &&
         event_.now - node.last_seen < options_.suspect_ms;
}

/// Workers end with their agent, so the workers of an earlier agent of this node are dead.
void WorkerHandler::AgentRestarted(Node& node, std::uint64_t agent_incarnation) {
  for (const auto& [index, id] : node.workers) {
    Worker& worker = worker_table_.at(id);
    if (worker.state != WorkerState::kGone && worker.agent_incarnation != agent_incarnation) {
      lifecycle_.Dead(worker, WorkerEnd::kUnrelated);
    }
  }
  for (const WorkerPlace& place : recovery_.OfOtherAgents(node.name, agent_incarnation)) {
    barrier_.Emit(WorkerGoneRecord{place.first, place.second});
    recovery_.AccountFor(place);
  }
}

void WorkerHandler::On(const Request& request, protocol::RegisterWorker&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return barrier_.Refuse(
        request, PermissionDenied("register worker: ", key, ": the key is for another node"));
  }
  if (message.byte_versions.size() > kMaxNameBytes) {
    return barrier_.Refuse(
        request,
        InvalidArgument("register worker: ", key, ": the versions of its code take ",
                        message.byte_versions.size(), " bytes, more than ", kMaxNameBytes));
  }
  if (message.host_identity.size() > kMaxNameBytes) {
    return barrier_.Refuse(
        request,
        InvalidArgument("register worker: ", key, ": its host's identity takes ",
                        message.host_identity.size(), " bytes, more than ", kMaxNameBytes));
  }
  if (!HasRoomFor(key)) return barrier_.Refuse(request, TooManyNodes("register worker", key));
  if (message.index >= kMaxWorkersPerNode) {
    return barrier_.Refuse(
        request, ResourceExhausted("register worker: ", key, ": no place ", message.index,
                                   ": a node has at most ", kMaxWorkersPerNode, " workers"));
  }
  Node& node = worker_table_.NodeNamed(key);
  if (node.host_identity.empty() && !message.host_identity.empty()) {
    worker_table_.SetHost(node, std::string(message.host_identity));
  }
  Worker& worker = worker_table_.PlaceOn(node, message.index);
  if (message.worker_incarnation == 0 ||
      Contains(worker.dead_incarnations, message.worker_incarnation) ||
      Contains(node.dead_workers, message.worker_incarnation) ||
      Contains(node.dead_incarnations, message.agent_incarnation)) {
    // The process outlived a silence of its node: its end makes room for the next one.
    if (node.registered) {
      barrier_.Send(node.agent, 0, protocol::KillWorker{message.index, message.worker_incarnation});
    }
    return barrier_.Refuse(request, Aborted("register worker: this process was declared dead"));
  }
  if (worker.state == WorkerState::kCondemned && worker.incarnation == message.worker_incarnation) {
    return barrier_.Refuse(request, Aborted("register worker: its leases expired; it is to end"));
  }
  if (worker.state != WorkerState::kGone && worker.incarnation != message.worker_incarnation) {
    lifecycle_.Dead(worker, EndUnlessCondemned(worker, WorkerEnd::kKilled));
  }
  const bool moved = worker.peer != request.peer;
  worker.peer = request.peer;
  worker.last_seen = event_.now;
  peers_.BindWorker(request.peer, worker.id);
  if (worker.state == WorkerState::kGone) StartWorker(worker, message);
  Reoffer(worker, message.held, moved);
  worker_table_.Reindex(worker);
  LookAgain();
  barrier_.Answer(request,
                  protocol::WorkerRegistered{barrier_.table().incarnation(),
                                             static_cast<std::uint32_t>(options_.lease_ms)});
}

/// A process fills the place.
void WorkerHandler::StartWorker(Worker& worker, const protocol::RegisterWorker& message) {
  worker.state = WorkerState::kUp;
  worker.incarnation = message.worker_incarnation;
  worker.agent_incarnation = message.agent_incarnation;
  worker.pid = message.pid;
  worker.numerics = message.numerics;
  worker.byte_versions = message.byte_versions;
  worker.capacity = message.capacity;
  worker.sends_heartbeats = false;
  worker.suspect = {};
  worker.reserved = false;
  worker.barred.clear();
  worker.streams_fetched.clear();
  worker.shard_pace = {};
  worker.work.busy_since = worker.planning.busy_since = event_.now;
  worker.shard_since = worker.progress_at = event_.now;
  worker.drain_peer = 0;
  const auto known = barrier_.table().known_workers().find({worker.node, worker.index});
  if (known == barrier_.table().known_workers().end() ||
      known->second.worker_incarnation != message.worker_incarnation) {
    barrier_.Emit(WorkerSeenRecord{worker.node, worker.index, worker.incarnation,
                                   worker.agent_incarnation, worker.pid,
                                   worker_table_.NodeOf(worker).host_identity});
    barrier_.Hold(worker.id);
  }
  worker.known_sequence = barrier_.last_sequence();
}

/// Reconciles the leases that a worker reports with the table. `moved`: it has a new connection, so
/// leases that it does not name, or the reports of their end, were lost on the way.
void WorkerHandler::Reoffer(Worker& worker, const std::vector<protocol::HeldLease>& held,
                            bool moved) {
  std::set<LeaseNumber> named, former_shards;
  for (const protocol::HeldLease& one : held) {
    named.insert(one.lease);
    const Lease* lease = book_.Find(one.lease);
    if (lease != nullptr && lease->worker == worker.id) continue;
    if (one.is_shard && one.lease.incarnation < barrier_.table().incarnation())
      former_shards.insert(one.lease);
    if (!one.is_shard && one.lease.incarnation < barrier_.table().incarnation() &&
        lease == nullptr) {
      batch_.Adopt(worker, one);
    }
    if (book_.Find(one.lease) == nullptr) book_.Revoke(worker.id, one.lease);
  }
  if (moved) lifecycle_.TakeUnnamed(worker, named);
  worker.former_shards = std::move(former_shards);
  recovery_.AccountFor({worker.node, worker.index});
  worker_table_.Reassign(worker);
}

void WorkerHandler::On(const Request& request, protocol::RenewLeases&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  protocol::LeasesRenewed answer;
  std::set<LeaseNumber> named;
  for (const protocol::RenewLeases::Item& item : message.items) {
    named.insert(item.lease);
    Lease* lease = book_.Find(item.lease);
    if (lease == nullptr || lease->worker != worker->id ||
        (lease->is_shard && lease->phase != ShardPhase::kMaking)) {
      answer.unknown.push_back(item.lease);
    } else if (item.progress > lease->progress) {
      lease->progress = item.progress;
      lease->deadline = event_.now + options_.lease_ms;
      worker->progress_at = event_.now;
      if (!lease->is_shard) batch_.Renew(*worker, *lease, item.cpu_us);
    }
  }
  std::erase_if(worker->former_shards,
                [&](const LeaseNumber& lease) { return named.count(lease) == 0; });
  barrier_.Answer(request, std::move(answer));
}

void WorkerHandler::On(const Request& request, protocol::TasksFinished&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  protocol::TasksCommitted committed = batch_.Finish(*worker, std::move(message));
  lifecycle_.FinishDrains(*worker);
  barrier_.Answer(request, std::move(committed));
}

void WorkerHandler::On(const Request& request, protocol::PutResultPart&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker != nullptr) batch_.KeepPart(request, *worker, std::move(message));
}

void WorkerHandler::GiveInput(const Request& request, const protocol::FetchResult& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker != nullptr) batch_.GiveInput(request, *worker, message);
}

void WorkerHandler::On(const Request& request, protocol::WorkerExited&& message) {
  Node* const found = peers_.NodeOf(request.peer);
  if (message.node != request.identity->key_name || found == nullptr ||
      found->name != message.node) {
    return barrier_.Refuse(request,
                           PermissionDenied("report worker's end: not the agent of that node"));
  }
  Node& node = *found;
  node.last_seen = event_.now;
  const WorkerPlace place{message.node, message.index};
  const Unaccounted* entry = recovery_.Find(place);
  if (entry != nullptr && entry->worker_incarnation == message.worker_incarnation) {
    barrier_.Emit(WorkerGoneRecord{message.node, message.index});
    recovery_.AccountFor(place);
  }
  if (message.worker_incarnation != 0 && message.index < kMaxWorkersPerNode) {
    // The worker's registration may still be on the way, on another connection.
    Worker& worker = worker_table_.PlaceOn(node, message.index);
    if (worker.state != WorkerState::kGone && worker.incarnation == message.worker_incarnation) {
      lifecycle_.Dead(worker, EndUnlessCondemned(worker, EndOf(message.wait_status)),
                      SuspectsOf(message.wait_status));
    } else if (!Contains(worker.dead_incarnations, message.worker_incarnation)) {
      Remember(worker.dead_incarnations, message.worker_incarnation);
    }
  }
  barrier_.Answer(request, protocol::WorkerExitSeen{});
}

void WorkerHandler::Kill(const WorkerPlace& place, std::uint64_t worker_incarnation) {
  const auto node = worker_table_.nodes().find(place.first);
  if (node == worker_table_.nodes().end() || !node->second.registered) return;
  barrier_.Send(node->second.agent, 0, protocol::KillWorker{place.second, worker_incarnation});
}

/// Asks returned workers again to drop leases of a former incarnation, as long as there is time;
/// kills the others.
void WorkerHandler::Settle() {
  for (const auto& [place, entry] : recovery_.unaccounted()) Kill(place, entry.worker_incarnation);
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.former_shards.empty()) continue;
    if (recovery_.IsOver()) {
      Kill({worker.node, worker.index}, worker.incarnation);
    } else {
      for (const LeaseNumber& shard : worker.former_shards) book_.Revoke(worker.id, shard);
    }
  }
}

void WorkerHandler::TickRecovery() {
  if (recovery_.SettlingIsDue()) Settle();
  for (const WorkerPlace& place : recovery_.Lost()) {
    barrier_.Emit(WorkerGoneRecord{place.first, place.second});
    recovery_.Lose(place);
  }
  for (const TaskId& id : recovery_.TakeHeldBack()) batch_.Enqueue(id);
}

void WorkerHandler::On(const Request& request, protocol::Drain&&) {
  if (Node* node = peers_.NodeOf(request.peer); node != nullptr) {
    node->draining = true;
    node->drain_request = request.request_id;
    node->last_seen = event_.now;
    worker_table_.ReindexNode(*node);
    return lifecycle_.FinishNodeDrain(*node);
  }
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  worker->state = WorkerState::kDraining;
  worker->drain_peer = request.peer;
  worker->drain_request = request.request_id;
  worker_table_.Reindex(*worker);
  lifecycle_.FinishDrains(*worker);
}

void WorkerHandler::On(const Request& request, protocol::ChangeNode&& message) {
  const auto& drained = barrier_.table().drained_nodes();
  const auto& labels = barrier_.table().node_labels();
  const auto found = worker_table_.nodes().find(message.node);
  const auto before = drained.find(message.node);
  const auto label = labels.find(message.node);
  if (found == worker_table_.nodes().end() && before == drained.end() && label == labels.end()) {
    return barrier_.Refuse(request, NotFound("change node: ", message.node, ": no such node"));
  }
  if (message.text.size() > kMaxNameBytes) {
    return barrier_.Refuse(
        request, InvalidArgument("change node: ", message.node, ": its text is longer than ",
                                 kMaxNameBytes, " bytes"));
  }
  ChangeNodeRecord now{message.node, "", "", ""};
  if (before != drained.end()) now.by = before->second.by, now.reason = before->second.reason;
  if (label != labels.end()) now.label = label->second;
  const ChangeNodeRecord former = now;
  if (message.change == protocol::NodeChange::kLabel) {
    now.label = std::move(message.text);
  } else {
    const bool drains = message.change == protocol::NodeChange::kDrain;
    now.by = drains ? request.identity->key_name : "";
    now.reason = drains ? std::move(message.text) : "";
  }
  const bool more = (!now.by.empty() && before == drained.end() && drained.size() >= kMaxNodes) ||
                    (!now.label.empty() && label == labels.end() && labels.size() >= kMaxNodes);
  if (more) return barrier_.Refuse(request, TooManyNodes("change node", message.node));
  const bool drains = !now.by.empty();
  if (now != former) barrier_.Emit(std::move(now));
  if (found != worker_table_.nodes().end()) SetDrained(found->second, drains);
  barrier_.Answer(request, protocol::NodeChanged{});
}

/// A drained node finishes the tasks that it runs and the shards that it has.
void WorkerHandler::SetDrained(Node& node, bool drained) {
  node.drained = drained;
  worker_table_.ReindexNode(node);
  for (const auto& [index, id] : node.workers) {
    if (drained) batch_.TakeBackUnstarted(worker_table_.at(id), 0);
  }
  LookAgain();
}

}  // namespace patchbay::scheduler
