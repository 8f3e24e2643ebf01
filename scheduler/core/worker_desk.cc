#include "scheduler/core/worker_desk.h"

#include <algorithm>
#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// What was held by a worker that is being killed has been dealt with.
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
  return absl::ResourceExhaustedError(
      StrCat(doing, ": ", node, ": there are ", kMaxNodes, " nodes already"));
}

}  // namespace

bool WorkerDesk::HasRoomFor(const std::string& node) {
  if (roster_.nodes().size() < kMaxNodes || roster_.nodes().count(node) != 0) return true;
  std::set<WorkerId> held_from;
  for (const auto& [number, lease] : book_.leases()) held_from.insert(lease.worker);
  const Node* longest = nullptr;
  for (const auto& [name, one] : roster_.nodes()) {
    const bool longer = longest == nullptr || one.last_seen < longest->last_seen;
    if (longer && HoldsNothing(one, held_from)) longest = &one;
  }
  if (longest == nullptr) return false;
  roster_.Forget(std::string(longest->name));
  return true;
}

bool WorkerDesk::HoldsNothing(const Node& node, const std::set<WorkerId>& held_from) const {
  if (node.registered || node.agent != 0) return false;
  const auto& known = gate_.table().known_workers();
  const auto first = known.lower_bound({node.name, 0});
  if (first != known.end() && first->first.first == node.name) return false;
  return std::all_of(node.workers.begin(), node.workers.end(), [&](const auto& place) {
    const Worker& worker = roster_.at(place.second);
    return worker.state == WorkerState::kGone && worker.known_sequence <= gate_.durable() &&
           held_from.count(worker.id) == 0;
  });
}

void WorkerDesk::LookAgain() {
  batch_.LookAgain();
  streams_.MarkChanged();
}

void WorkerDesk::On(const Request& request, protocol::RegisterAgent&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return gate_.Refuse(request, absl::PermissionDeniedError(StrCat(
                                     "register agent: ", key, ": the key is for another node")));
  }
  if (const std::size_t bytes = TextBytes(message); bytes > kMaxNodeTextBytes) {
    return gate_.Refuse(request, absl::InvalidArgumentError(
                                     StrCat("register agent: ", key, ": its host and GPUs take ",
                                            bytes, " bytes, more than ", kMaxNodeTextBytes)));
  }
  if (!HasRoomFor(key)) return gate_.Refuse(request, TooManyNodes("register agent", key));
  Node& node = roster_.NodeNamed(key);
  if (Contains(node.dead_incarnations, message.agent_incarnation)) {
    return gate_.Refuse(request, absl::AbortedError("register agent: a newer agent has this node"));
  }
  if (IsOnAnotherMachine(node, message)) {
    return gate_.Refuse(request, absl::AlreadyExistsError(StrCat(
                                     "register agent: key ", key, " is in use on ", node.host_name,
                                     ": one key is for one machine, make another with `patchbay "
                                     "key new NAME --role worker`")));
  }
  if (node.agent_incarnation != message.agent_incarnation) {
    if (node.agent_incarnation != 0) Remember(node.dead_incarnations, node.agent_incarnation);
    node.agent_incarnation = message.agent_incarnation;
    node.draining = false;
    AgentRestarted(node, message.agent_incarnation);
  }
  node.agent = request.peer;
  node.registered = true;
  node.last_seen = turn_.now;
  roster_.SetHost(node, std::move(message.host_identity));
  node.host_name = std::move(message.host_name);
  node.cpus = message.cpus;
  node.gpus = std::move(message.gpus);
  node.capacity = {message.cpus * 1000, static_cast<std::uint32_t>(node.gpus.size()),
                   message.memory_bytes};
  peers_.BindAgent(request.peer, key);
  roster_.ReindexNode(node);
  LookAgain();
  gate_.Answer(request,
               protocol::AgentRegistered{gate_.table().incarnation(), options_.heartbeat_ms});
}

/// Whether the node's agent lives, and on a machine that is not this one.
bool WorkerDesk::IsOnAnotherMachine(const Node& node,
                                    const protocol::RegisterAgent& message) const {
  return node.agent != 0 && node.registered && node.host_identity != message.host_identity &&
         turn_.now - node.last_seen < options_.suspect_ms;
}

/// Workers end with their agent, so those of another agent of this node are dead.
void WorkerDesk::AgentRestarted(Node& node, std::uint64_t agent_incarnation) {
  for (const auto& [index, id] : node.workers) {
    Worker& worker = roster_.at(id);
    if (worker.state != WorkerState::kGone && worker.agent_incarnation != agent_incarnation) {
      fate_.Dead(worker, WorkerEnd::kUnrelated);
    }
  }
  for (const WorkerPlace& place : recovery_.OfOtherAgents(node.name, agent_incarnation)) {
    gate_.Emit(WorkerGoneRecord{place.first, place.second});
    recovery_.AccountFor(place);
  }
}

void WorkerDesk::On(const Request& request, protocol::RegisterWorker&& message) {
  const std::string& key = request.identity->key_name;
  if (message.node != key) {
    return gate_.Refuse(request, absl::PermissionDeniedError(StrCat(
                                     "register worker: ", key, ": the key is for another node")));
  }
  if (message.byte_versions.size() > kMaxNameBytes) {
    return gate_.Refuse(
        request, absl::InvalidArgumentError(
                     StrCat("register worker: ", key, ": the versions of its code take ",
                            message.byte_versions.size(), " bytes, more than ", kMaxNameBytes)));
  }
  if (message.host_identity.size() > kMaxNameBytes) {
    return gate_.Refuse(
        request, absl::InvalidArgumentError(
                     StrCat("register worker: ", key, ": its host's identity takes ",
                            message.host_identity.size(), " bytes, more than ", kMaxNameBytes)));
  }
  if (!HasRoomFor(key)) return gate_.Refuse(request, TooManyNodes("register worker", key));
  if (message.index >= kMaxWorkersPerNode) {
    return gate_.Refuse(request, absl::ResourceExhaustedError(StrCat(
                                     "register worker: ", key, ": no place ", message.index,
                                     ": a node has at most ", kMaxWorkersPerNode, " workers")));
  }
  Node& node = roster_.NodeNamed(key);
  if (node.host_identity.empty() && !message.host_identity.empty()) {
    roster_.SetHost(node, std::string(message.host_identity));
  }
  Worker& worker = roster_.PlaceOn(node, message.index);
  if (message.worker_incarnation == 0 ||
      Contains(worker.dead_incarnations, message.worker_incarnation) ||
      Contains(node.dead_workers, message.worker_incarnation) ||
      Contains(node.dead_incarnations, message.agent_incarnation)) {
    // It outlived a silence of its node: its end makes room for the next.
    if (node.registered) {
      gate_.Send(node.agent, 0, protocol::KillWorker{message.index, message.worker_incarnation});
    }
    return gate_.Refuse(request,
                        absl::AbortedError("register worker: this process was declared dead"));
  }
  if (worker.state == WorkerState::kCondemned && worker.incarnation == message.worker_incarnation) {
    return gate_.Refuse(request,
                        absl::AbortedError("register worker: its leases expired; it is to end"));
  }
  if (worker.state != WorkerState::kGone && worker.incarnation != message.worker_incarnation) {
    fate_.Dead(worker, EndUnlessCondemned(worker, WorkerEnd::kKilled));
  }
  const bool moved = worker.peer != request.peer;
  worker.peer = request.peer;
  worker.last_seen = turn_.now;
  peers_.BindWorker(request.peer, worker.id);
  if (worker.state == WorkerState::kGone) StartWorker(worker, message);
  Reoffer(worker, message.held, moved);
  roster_.Reindex(worker);
  LookAgain();
  gate_.Answer(request, protocol::WorkerRegistered{gate_.table().incarnation(),
                                                   static_cast<std::uint32_t>(options_.lease_ms)});
}

/// A process fills the place.
void WorkerDesk::StartWorker(Worker& worker, const protocol::RegisterWorker& message) {
  worker.state = WorkerState::kUp;
  worker.incarnation = message.worker_incarnation;
  worker.agent_incarnation = message.agent_incarnation;
  worker.pid = message.pid;
  worker.numerics = message.numerics;
  worker.byte_versions = message.byte_versions;
  worker.capacity = message.capacity;
  worker.sends_heartbeats = false;
  worker.solo = worker.reserved = false;
  worker.barred.clear();
  worker.streams_fetched.clear();
  worker.shard_pace = {};
  worker.work.busy_since = worker.planning.busy_since = turn_.now;
  worker.shard_since = worker.progress_at = turn_.now;
  worker.drain_peer = 0;
  const auto known = gate_.table().known_workers().find({worker.node, worker.index});
  if (known == gate_.table().known_workers().end() ||
      known->second.worker_incarnation != message.worker_incarnation) {
    gate_.Emit(WorkerSeenRecord{worker.node, worker.index, worker.incarnation,
                                worker.agent_incarnation, worker.pid,
                                roster_.NodeOf(worker).host_identity});
    gate_.Hold(worker.id);
  }
  worker.known_sequence = gate_.last_sequence();
}

/// Settles what a worker says it holds with what the table says. `moved`: it has a new connection,
/// so leases it does not name, or its word of their end, were lost on the way.
void WorkerDesk::Reoffer(Worker& worker, const std::vector<protocol::HeldLease>& held, bool moved) {
  std::set<LeaseNumber> named, former_shards;
  for (const protocol::HeldLease& one : held) {
    named.insert(one.lease);
    const Lease* lease = book_.Find(one.lease);
    if (lease != nullptr && lease->worker == worker.id) continue;
    if (one.is_shard && one.lease.incarnation < gate_.table().incarnation())
      former_shards.insert(one.lease);
    if (!one.is_shard && one.lease.incarnation < gate_.table().incarnation() && lease == nullptr) {
      batch_.Adopt(worker, one);
    }
    if (book_.Find(one.lease) == nullptr) book_.Revoke(worker.id, one.lease);
  }
  if (moved) fate_.TakeUnnamed(worker, named);
  worker.former_shards = std::move(former_shards);
  recovery_.AccountFor({worker.node, worker.index});
  roster_.Reassign(worker);
}

void WorkerDesk::On(const Request& request, protocol::RenewLeases&& message) {
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
      lease->deadline = turn_.now + options_.lease_ms;
      worker->progress_at = turn_.now;
    }
  }
  std::erase_if(worker->former_shards,
                [&](const LeaseNumber& lease) { return named.count(lease) == 0; });
  gate_.Answer(request, std::move(answer));
}

void WorkerDesk::On(const Request& request, protocol::TasksFinished&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  protocol::TasksCommitted committed = batch_.Finish(*worker, std::move(message));
  fate_.FinishDrains(*worker);
  gate_.Answer(request, std::move(committed));
}

void WorkerDesk::On(const Request& request, protocol::PutResultPart&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker != nullptr) batch_.KeepPart(request, *worker, std::move(message));
}

void WorkerDesk::GiveInput(const Request& request, const protocol::FetchResult& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker != nullptr) batch_.GiveInput(request, *worker, message);
}

void WorkerDesk::On(const Request& request, protocol::WorkerExited&& message) {
  Node* const found = peers_.NodeOf(request.peer);
  if (message.node != request.identity->key_name || found == nullptr ||
      found->name != message.node) {
    return gate_.Refuse(
        request, absl::PermissionDeniedError("report worker's end: not the agent of that node"));
  }
  Node& node = *found;
  node.last_seen = turn_.now;
  const WorkerPlace place{message.node, message.index};
  const Unaccounted* entry = recovery_.Find(place);
  if (entry != nullptr && entry->worker_incarnation == message.worker_incarnation) {
    gate_.Emit(WorkerGoneRecord{message.node, message.index});
    recovery_.AccountFor(place);
  }
  if (message.worker_incarnation != 0 && message.index < kMaxWorkersPerNode) {
    // Its registration may still be on the way, on another connection.
    Worker& worker = roster_.PlaceOn(node, message.index);
    if (worker.state != WorkerState::kGone && worker.incarnation == message.worker_incarnation) {
      fate_.Dead(worker, EndUnlessCondemned(worker, EndOf(message.wait_status)),
                 SuspectsOf(message.wait_status));
    } else if (!Contains(worker.dead_incarnations, message.worker_incarnation)) {
      Remember(worker.dead_incarnations, message.worker_incarnation);
    }
  }
  gate_.Answer(request, protocol::WorkerExitSeen{});
}

void WorkerDesk::Kill(const WorkerPlace& place, std::uint64_t worker_incarnation) {
  const auto node = roster_.nodes().find(place.first);
  if (node == roster_.nodes().end() || !node->second.registered) return;
  gate_.Send(node->second.agent, 0, protocol::KillWorker{place.second, worker_incarnation});
}

/// Workers that are back are asked again to drop what they hold of a former incarnation, as long as
/// there is time; the others are killed.
void WorkerDesk::Settle() {
  for (const auto& [place, entry] : recovery_.unaccounted()) Kill(place, entry.worker_incarnation);
  for (const Worker& worker : roster_.workers()) {
    if (worker.former_shards.empty()) continue;
    if (recovery_.IsOver()) {
      Kill({worker.node, worker.index}, worker.incarnation);
    } else {
      for (const LeaseNumber& shard : worker.former_shards) book_.Revoke(worker.id, shard);
    }
  }
}

void WorkerDesk::TickRecovery() {
  if (recovery_.SettlingIsDue()) Settle();
  for (const WorkerPlace& place : recovery_.Lost()) {
    gate_.Emit(WorkerGoneRecord{place.first, place.second});
    recovery_.Lose(place);
  }
  for (const TaskId& id : recovery_.TakeHeldBack()) batch_.Enqueue(id);
}

void WorkerDesk::On(const Request& request, protocol::Drain&&) {
  if (Node* node = peers_.NodeOf(request.peer); node != nullptr) {
    node->draining = true;
    node->drain_request = request.request_id;
    node->last_seen = turn_.now;
    roster_.ReindexNode(*node);
    return fate_.FinishNodeDrain(*node);
  }
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  worker->state = WorkerState::kDraining;
  worker->drain_peer = request.peer;
  worker->drain_request = request.request_id;
  roster_.Reindex(*worker);
  fate_.FinishDrains(*worker);
}

}  // namespace patchbay::scheduler
