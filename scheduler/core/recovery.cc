#include "scheduler/core/recovery.h"

#include <algorithm>

namespace patchbay::scheduler {

void Recovery::Begin(const std::map<WorkerPlace, KnownWorker>& known_workers, JobId next_job) {
  next_job_ = next_job;
  for (const auto& [place, known] : known_workers) {
    Unaccounted& entry = unaccounted_[place];
    entry.host_identity = known.host_identity;
    entry.worker_incarnation = known.worker_incarnation;
    entry.agent_incarnation = known.agent_incarnation;
  }
  had_workers_ = !unaccounted_.empty();
  until_ = turn_.now + 2 * options_.lease_ms;
  kill_at_ = turn_.now + options_.lease_ms;
}

bool Recovery::AllowsGrants(const std::string& host_identity) const {
  if (unaccounted_.empty()) return true;
  if (!IsOver()) return false;
  return std::none_of(unaccounted_.begin(), unaccounted_.end(), [&](const auto& entry) {
    const std::string& host = entry.second.host_identity;
    return host.empty() || host == host_identity;
  });
}

Unaccounted* Recovery::Find(const WorkerPlace& place) {
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
  if (unaccounted_.erase(place) != 0) changed_ = true;
}

bool Recovery::KillIsDue() {
  if (unaccounted_.empty() || turn_.now < kill_at_) return false;
  kill_at_ = turn_.now + options_.resend_ms;
  return true;
}

std::vector<TaskId> Recovery::TakeHeldBack() {
  if (!unaccounted_.empty() && !IsOver()) return {};
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
    if (entry.registered && entry.shards.empty()) {
      return Broken("a worker is back without shards and still waited for");
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
