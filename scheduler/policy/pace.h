// Measured times of tasks and shards, from which follows how much work a worker is given in
// advance.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

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

}  // namespace patchbay::scheduler
