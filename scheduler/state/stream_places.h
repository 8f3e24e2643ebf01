// Places of streams in their teams.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// The streams that wait because their team has as many ranks of streams as it may, `most.streams`,
/// and those that have a place. A team's streams get places in the order of their submission, and
/// keep them until they end, whatever the policy becomes. Nothing of a stream without a place is
/// queued.
class StreamPlaces {
 public:
  explicit StreamPlaces(JobTable& table) : table_(table) {}

  /// After a restart: streams whose planning has begun have places, then the first of the others.
  void Start();
  /// Whether a stream of so many ranks would get a place of the team at once.
  bool HasRoom(const std::string& team, std::uint32_t ranks) const;
  /// The stream was submitted, or is open again: it waits until the next Admit at least.
  void Wait(Job& job);
  void Leave(Job& job);
  /// Jobs may be of other teams, and these may have more or less.
  void Recount();
  /// Streams that have got a place: their tasks are to be queued.
  std::vector<JobId> Admit();

 private:
  bool Fits(const std::string& team, std::uint32_t ranks) const;

  JobTable& table_;
  std::map<std::string, std::uint64_t> taken_;  ///< ranks with a place, by team
  std::set<JobId> waiting_;
  bool changed_ = false;  ///< since the last Admit
};

}  // namespace patchbay::scheduler
