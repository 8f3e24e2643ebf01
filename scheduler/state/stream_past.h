// The course of a stream over the last hour: its rate, its stall, and the stages of the workers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "runtime/core/clock.h"
#include "runtime/model/stream/stage_times.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// Bytes of shards by the path on which they reached their trainers.
struct DeliveredBytes {
  std::uint64_t mapped = 0, tls = 0, ucx = 0;
};

/// Sums since the stream was opened, and what they were at times of the last hour. At most
/// kPastSamples samples. Larger kSampleMs: a steadier rate, and stalls that are seen later.
class StreamPast {
 public:
  static constexpr TimeMs kSampleMs = 10'000, kPastMs = 3'600'000;
  static constexpr std::size_t kPastSamples = kPastMs / kSampleMs + 1;

  /// A worker of the node made a shard.
  void AddShard(const std::string& node, const StageTimes& times, std::uint32_t patches);
  /// Keeps a sample if one is due. Call about every 100 ms; `now` does not fall.
  void Look(TimeMs now, std::uint64_t patches_made, TimeMs stalled_ms);
  protocol::StreamCourse Course(TimeMs now, std::uint64_t patches_made, TimeMs stalled_ms) const;
  const StageTotals& stages() const { return stages_; }

 private:
  struct Sample {
    TimeMs at = 0;
    std::uint64_t patches_made = 0;
    TimeMs stalled_ms = 0;
    StageTotals stages;
  };
  using Nodes = std::unordered_map<std::string, StageTotals>;

  void NameSlowest(protocol::StreamCourse& course) const;

  std::deque<Sample> samples_;
  StageTotals stages_;
  Nodes nodes_, nodes_before_;  ///< since the last sample, and between the two before
};

}  // namespace patchbay::scheduler
