#include "scheduler/policy/pace.h"

#include <algorithm>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

/// Time that a lease, its report and the next lease take in a busy process.
constexpr std::int64_t kRoundTripUs = 10'000;

/// No estimate is longer: more would change nothing, and sums of estimates must not overflow.
constexpr std::int64_t kLongestEstimateUs = 3'600'000'000;

std::int64_t Blend(std::int64_t average_us, std::int64_t sample_us, std::int64_t weight) {
  return average_us + (sample_us - average_us) * weight / 8;
}

}  // namespace

void TaskPace::Measure(const std::string& op, const FinishedTasks& finished) {
  const std::uint32_t count = finished.count;
  if (count == 0) return;
  const Average sample = {std::max<std::int64_t>(finished.us, 0) / count,
                          std::max<std::int64_t>(finished.cpu_us, 0) / count,
                          static_cast<double>(finished.weight) / count, ++measurements_};
  const auto it = averages_.find(op);
  if (it == averages_.end()) {
    if (averages_.size() >= kMaxMeasuredOps) averages_.erase(LongestUnmeasured());
    averages_.emplace(op, sample);
    return;
  }
  const std::int64_t share = count >= 4 ? 4 : 1;
  Average& average = it->second;
  average.measured = sample.measured;
  average.us = Blend(average.us, sample.us, share);
  average.cpu_us = Blend(average.cpu_us, sample.cpu_us, share);
  average.weight += (sample.weight - average.weight) * static_cast<double>(share) / 8;
}

TaskPace::Averages::iterator TaskPace::LongestUnmeasured() {
  return std::min_element(averages_.begin(), averages_.end(), [](const auto& a, const auto& b) {
    return a.second.measured < b.second.measured;
  });
}

TaskPace::Estimate TaskPace::Of(const std::string& op, std::uint64_t weight) const {
  const auto it = averages_.find(op);
  if (it == averages_.end()) return {kUnknownTaskUs, kUnknownTaskUs};
  const Average& average = it->second;
  const double relative = static_cast<double>(weight) / average.weight;
  if (average.weight <= 0 || relative <= 1) return {average.us, average.cpu_us};
  const auto scaled = [&](std::int64_t us) {
    return static_cast<std::int64_t>(
        std::min(static_cast<double>(us) * relative, static_cast<double>(kLongestEstimateUs)));
  };
  return {scaled(average.us), scaled(average.cpu_us)};
}

bool QueueHasRoom(std::uint32_t queued, std::int64_t queued_us, std::int64_t estimate_us) {
  if (queued == 0) return true;
  return queued < kMaxQueueDepth && queued_us + estimate_us <= kQueueTargetUs;
}

void ShardPace::Measure(std::int64_t shard_us) {
  const std::int64_t sample = std::clamp<std::int64_t>(shard_us, 1, 60'000'000);
  average_us_ = average_us_ == 0 ? sample : Blend(average_us_, sample, 1);
}

std::uint32_t ShardPace::Depth() const {
  if (average_us_ == 0) return kMinShardDepth;
  const std::int64_t depth = kMinShardDepth + kRoundTripUs / std::max<std::int64_t>(average_us_, 1);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(depth, kMaxShardDepth));
}

}  // namespace patchbay::scheduler
