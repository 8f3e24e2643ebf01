#include "scheduler/core/recovery.h"

namespace patchbay::scheduler {

void Recovery::Begin(const std::map<WorkerPlace, KnownWorker>& known_workers, JobId next_job) {
  next_job_ = next_job;
  for (const auto& [place, known] : known_workers) {
    unaccounted_[place] = {known.host_identity, known.pid, known.worker_incarnation,
                           known.agent_incarnation};
  }
  begun_ = event_.now;
  settle_at_ = event_.now + options_.lease_ms;
}

bool Recovery::AllowsGrants(Trainer& trainer) const {
  if (trainer.holders.empty()) return true;
  const auto* here = worker_table_.NodesOnHost(trainer.endpoint.host_identity);
  if (here == nullptr) return false;
  for (const auto& [name, node] : *here) {
    for (const auto& [index, id] : node->workers) {
      const Worker& worker = worker_table_.at(id);
      const bool clear = worker.state != WorkerState::kGone && worker.former_shards.empty();
      if (clear) trainer.holders.erase(worker.pid);
    }
  }
  return trainer.holders.empty();
}

std::string Recovery::NameHolder(const Trainer& trainer) const {
  const std::int64_t pid = *trainer.holders.begin();
  const std::string& host = trainer.endpoint.host_identity;
  for (const auto& [place, entry] : unaccounted_) {
    if (entry.pid == pid && (entry.host_identity.empty() || entry.host_identity == host)) {
      return StrCat("worker process ", pid, " of node ", place.first);
    }
  }
  return StrCat("worker process ", pid);
}

const Unaccounted* Recovery::Find(const WorkerPlace& place) const {
  const auto it = unaccounted_.find(place);
  return it == unaccounted_.end() ? nullptr : &it->second;
}

std::vector<WorkerPlace> Recovery::OfOtherAgents(const std::string& node,
                                                 std::uint64_t agent_incarnation) const {
  std::vector<WorkerPlace> places;
  for (const auto& [place, entry] : unaccounted_) {
    if (place.first == node && entry.agent_incarnation != agent_incarnation) {
      places.push_back(place);
    }
  }
  return places;
}

void Recovery::AccountFor(WorkerPlace place) {  // a copy: it may live in what is erased
  unaccounted_.erase(place);
}

bool Recovery::IsBack(const std::string& node) const {
  const auto it = worker_table_.nodes().find(node);
  return it != worker_table_.nodes().end() && it->second.registered;
}

std::set<std::string> Recovery::AwaitedNodes() const {
  std::set<std::string> nodes;
  if (event_.now >= begun_ + options_.forget_node_ms) return nodes;
  for (const auto& [place, entry] : unaccounted_) {
    if (!IsBack(place.first)) nodes.insert(place.first);
  }
  return nodes;
}

std::vector<WorkerPlace> Recovery::Lost() const {
  std::vector<WorkerPlace> places;
  if (event_.now < begun_ + options_.forget_node_ms) return places;
  for (const auto& [place, entry] : unaccounted_) {
    if (!IsBack(place.first)) places.push_back(place);
  }
  return places;
}

void Recovery::Lose(const WorkerPlace& place) {
  lost_nodes_.insert(place.first);
  AccountFor(place);
}

bool Recovery::SettlingIsDue() {
  if (event_.now < settle_at_) return false;
  settle_at_ = event_.now + options_.resend_ms;
  return true;
}

std::vector<TaskId> Recovery::TakeHeldBack() {
  if (!unaccounted_.empty() && event_.now < begun_ + options_.suspect_ms) return {};
  return std::exchange(held_back_, {});
}

Status Recovery::Check(const std::map<WorkerPlace, KnownWorker>& known_workers) const {
  for (const auto& [place, entry] : unaccounted_) {
    const auto known = known_workers.find(place);
    if (known == known_workers.end() ||
        known->second.worker_incarnation != entry.worker_incarnation) {
      return Broken(StrCat("worker ", place.first, "/", place.second,
                           " is waited for, and the journal knows another or none"));
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
