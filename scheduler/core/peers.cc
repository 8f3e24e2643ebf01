#include "scheduler/core/peers.h"

#include <algorithm>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void Peers::Join(PeerId peer, PeerIdentity&& identity) {
  if (peers_.size() >= kMaxPeers && peers_.count(peer) == 0) return;
  peers_[peer].identity = std::move(identity);
}

const Peer* Peers::Find(PeerId peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? nullptr : &it->second;
}

void Peers::BindWorker(PeerId peer, WorkerId worker) {
  WorkerId& bound = peers_.at(peer).worker;
  if (bound != kNoWorker && bound != worker && worker_table_.at(bound).peer == peer) {
    worker_table_.at(bound).peer = 0;
    worker_table_.Reindex(worker_table_.at(bound));
  }
  bound = worker;
}

Worker* Peers::WorkerOf(const Request& request) {
  const WorkerId id = peers_.at(request.peer).worker;
  if (id == kNoWorker || worker_table_.at(id).peer != request.peer ||
      worker_table_.at(id).state == WorkerState::kGone) {
    barrier_.Refuse(request, FailedPrecondition("receive message: register the worker first"));
    return nullptr;
  }
  Worker& worker = worker_table_.at(id);
  if (worker.state == WorkerState::kCondemned) {
    barrier_.Refuse(request,
                    Aborted("receive message: this worker's leases expired; it is to end"));
    return nullptr;
  }
  worker.last_seen = event_.now;
  return &worker;
}

Node* Peers::NodeOf(PeerId peer) {
  const std::string& name = peers_.at(peer).agent_of;
  if (name.empty()) return nullptr;
  const auto node = worker_table_.nodes().find(name);
  if (node == worker_table_.nodes().end()) return nullptr;  // forgotten
  return node->second.agent == peer ? &node->second : nullptr;
}

bool Peers::Heard(PeerId peer, const protocol::Heartbeat& heartbeat) {
  bool bound = false;
  if (Node* node = NodeOf(peer); node != nullptr) {
    node->last_seen = event_.now;
    node->memory_bytes = heartbeat.memory_bytes;
    bound = node->registered;
    const auto& silent = heartbeat.silent;
    for (const auto& [index, id] : node->workers) {
      const bool speaks = std::find(silent.begin(), silent.end(), index) == silent.end();
      if (speaks && worker_table_.at(id).peer != 0) Heard(worker_table_.at(id));
    }
  }
  const WorkerId id = peers_.at(peer).worker;
  if (id != kNoWorker && worker_table_.at(id).peer == peer) {
    Heard(worker_table_.at(id));
    bound = bound || worker_table_.at(id).state != WorkerState::kGone;
  }
  return bound;
}

void Peers::Heard(Worker& worker) const {
  worker.last_seen = event_.now;
  worker.sends_heartbeats = true;
}

void Peers::Leave(PeerId peer) {
  if (peers_.count(peer) == 0) return;
  const WorkerId id = peers_.at(peer).worker;
  if (id != kNoWorker && worker_table_.at(id).peer == peer) {
    worker_table_.at(id).peer = 0;
    worker_table_.Reindex(worker_table_.at(id));
  }
  if (Node* node = NodeOf(peer); node != nullptr) {
    node->agent = 0;
    worker_table_.ReindexNode(*node);
  }
  peers_.erase(peer);
}

}  // namespace patchbay::scheduler
