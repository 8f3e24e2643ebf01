// Measured times of tasks and shards: how much work a worker is given in advance, and what a task
// has cost while it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/core/clock.h"

namespace patchbay::scheduler {

/// Tasks of one op that a worker has finished.
struct FinishedTasks {
  std::uint32_t count = 0;
  std::uint64_t weight = 0;
  std::int64_t us = 0, cpu_us = 0;  ///< time that they took, and processor time of it
};

/// Moving averages of the time one task of each op takes at a worker, of the processor time in it,
/// and of its weight.
class TaskPace {
 public:
  /// The two differ where a core is slow, shared with shards, or waits for storage.
  struct Estimate {
    std::int64_t us = 0, cpu_us = 0;
  };

  /// Past kMaxMeasuredOps the op that was not measured for longest is forgotten.
  void Measure(const std::string& op, const FinishedTasks& finished);
  /// The time that a task of that weight is expected to take: a task heavier than the average takes
  /// proportionally longer, so that a worker does not get many tasks of a large slide after it was
  /// fast on a small one. kUnknownTaskUs for an op never measured.
  Estimate Of(const std::string& op, std::uint64_t weight) const;

 private:
  struct Average {
    std::int64_t us = 0, cpu_us = 0;
    double weight = 0;
    std::uint64_t measured = 0;  ///< number of its last measurement
  };
  using Averages = std::unordered_map<std::string, Average>;
  Averages::iterator LongestUnmeasured();

  Averages averages_;
  std::uint64_t measurements_ = 0;
};

/// Whether a worker with `queued` tasks that take `queued_us` may be given one more of
/// `estimate_us`: always when it is empty, then while the sum stays below kQueueTargetUs and the
/// count below kMaxQueueDepth. So no-op tasks go out by hundreds and one-second tasks one by one.
bool QueueHasRoom(std::uint32_t queued, std::int64_t queued_us, std::int64_t estimate_us);

/// Moving average of the time between shards at one worker.
class ShardPace {
 public:
  void Measure(std::int64_t shard_us);
  /// Shards leased to one worker at a time: one being made, one being read, and more when shards
  /// are so short that the round trip through the scheduler would show.
  std::uint32_t Depth() const;

 private:
  std::int64_t average_us_ = 0;
};

/// The cost of a task that runs: as its worker last reported, and since then at the pace of the
/// time before that report.
class RunningCost {
 public:
  /// The task was given to its worker then, or had taken so much by then.
  explicit RunningCost(TimeMs at = 0, std::int64_t cpu_us = 0) : cpu_us_(cpu_us), at_(at) {}

  void Report(TimeMs now, std::int64_t cpu_us) {
    const std::int64_t more_us = std::max<std::int64_t>(cpu_us - cpu_us_, 0);
    const auto passed_ms = static_cast<double>(std::max<TimeMs>(now - at_, 1));
    us_a_ms_ = std::min(static_cast<double>(more_us) / passed_ms, kMostUsAMs);
    cpu_us_ += more_us;
    at_ = now;
  }
  /// By then. A worker that reports no more is not thought to work for long.
  std::int64_t By(TimeMs then) const {
    const auto passed_ms = static_cast<double>(std::clamp<TimeMs>(then - at_, 0, kMostAheadMs));
    return cpu_us_ + static_cast<std::int64_t>(us_a_ms_ * passed_ms);
  }

 private:
  static constexpr TimeMs kMostAheadMs = 2'000;  ///< workers report once a second
  static constexpr double kMostUsAMs = 64'000;   ///< no task has more threads

  std::int64_t cpu_us_;
  TimeMs at_;
  double us_a_ms_ = 0;
};

}  // namespace patchbay::scheduler
