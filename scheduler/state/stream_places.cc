#include "scheduler/state/stream_places.h"

#include <algorithm>
#include <utility>

namespace patchbay::scheduler {

void StreamPlaces::Start() {
  for (auto& [id, job] : table_.mutable_jobs()) {
    if (job.IsStream() && !IsEnded(job.state) && job.tasks_done == 0) Wait(job);
  }
  Recount();
  Admit();
}

bool StreamPlaces::Fits(const std::string& team, std::uint32_t ranks) const {
  const model::TeamRules* const rules = table_.teams().policy.Find(team);
  if (rules == nullptr || !rules->most.streams) return true;
  const auto taken = taken_.find(team);
  return (taken == taken_.end() ? 0 : taken->second) + ranks <= *rules->most.streams;
}

bool StreamPlaces::HasRoom(const std::string& team, std::uint32_t ranks) const {
  const bool first = std::none_of(waiting_.begin(), waiting_.end(),
                                  [&](JobId id) { return table_.Find(id)->team == team; });
  return first && Fits(team, ranks);
}

void StreamPlaces::Wait(Job& job) {
  job.waits_for_place = changed_ = true;
  waiting_.insert(job.id);
}

void StreamPlaces::Leave(Job& job) {
  if (waiting_.erase(job.id) == 0) taken_[job.team] -= job.world_size;
  job.waits_for_place = false;
  changed_ = true;
}

void StreamPlaces::Recount() {
  taken_.clear();
  for (const auto& [id, job] : table_.jobs()) {
    const bool has_place = job.IsStream() && !IsEnded(job.state) && !job.waits_for_place;
    if (has_place) taken_[job.team] += job.world_size;
  }
  changed_ = true;
}

std::vector<JobId> StreamPlaces::Admit() {
  std::vector<JobId> admitted;
  if (!std::exchange(changed_, false)) return admitted;
  std::set<std::string> full;
  for (const JobId id : waiting_) {
    Job& job = *table_.Find(id);
    if (full.count(job.team) == 0 && Fits(job.team, job.world_size)) {
      taken_[job.team] += job.world_size;
      job.waits_for_place = false;
      admitted.push_back(id);
    } else {
      full.insert(job.team);
    }
  }
  for (const JobId id : admitted) waiting_.erase(id);
  return admitted;
}

}  // namespace patchbay::scheduler
