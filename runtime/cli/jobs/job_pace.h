// How fast a job goes and how long it still takes, from the rows that are seen of it.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct JobPace {
  double bytes_per_s = 0;    ///< of raw pixels; 0: not known yet
  double seconds_left = -1;  ///< negative: not known
};

/// Largest share of a job's work that is shown as done while it has not ended.
inline constexpr double kMostBeforeDone = 0.999;

/// The pace of a job since it was seen as `before`, `elapsed_s` ago.
JobPace PaceOf(const protocol::JobRow& job, const protocol::JobRow& before, double elapsed_s);

/// Follows one job. Work is counted when a task ends, so a rate up to now would fall between two
/// ends and jump at each: rates are up to the newest end, and the time left is counted down from
/// there. Work that takes longer than ever before to end counts against them.
class JobPaceMeter {
 public:
  /// The pace known now, after this row too. `now_s` is of a steady clock and does not fall.
  JobPace Look(const protocol::JobRow& job, double now_s);

 private:
  struct Sample {
    double at_s = 0;
    std::uint64_t weight = 0, bytes = 0;
  };

  void Add(const protocol::JobRow& job, double now_s);

  std::deque<Sample> samples_;  ///< rows that differ: of the whole run, or what is recent of it
  std::uint64_t weight_total_ = 0;
  double longest_gap_s_ = 0;  ///< between two rows that differ
};

/// The share of a job's work to be shown: it never falls, stands while a job finds more to do, and
/// is 1 once the job is done, not before.
class ShownShare {
 public:
  double Look(const protocol::JobRow& job);

 private:
  std::uint64_t weight_total_ = 0;
  std::uint64_t prepared_ = 0;  ///< weight of what only found more to do
  double most_ = 0;
};

}  // namespace patchbay::cli
