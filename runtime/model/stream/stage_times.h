// Times of a stream by stage: the workers' time in each stage, and the share of the trainer's
// waiting that it explains.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace patchbay {

/// Wall time of the stages for one shard, in microseconds, all its patches together.
/// Waits in the queues between stages are not counted.
struct StageTimes {
  std::uint32_t storage_us = 0;    ///< deriving the spec, reading the encoded bytes
  std::uint32_t decode_us = 0;     ///< encoded bytes to pixels, resampling included
  std::uint32_t transform_us = 0;  ///< pixels to the finished patch, labels included
  /// Over a network or to a device; 0 where it was written in place.
  std::uint32_t transfer_us = 0;
  bool operator==(const StageTimes&) const = default;
};

/// Microseconds of a StageTimes; times past its range (71 minutes) stay at its end.
constexpr std::uint32_t ToStageUs(std::int64_t ns) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns / 1000, 0, kMost));
}

/// Sums over the shards that counted.
struct StageTotals {
  std::uint64_t storage_us = 0, decode_us = 0, transform_us = 0, transfer_us = 0;
  std::uint64_t patches = 0;

  void Add(const StageTimes& times, std::uint32_t patches_of_shard) {
    storage_us += times.storage_us;
    decode_us += times.decode_us;
    transform_us += times.transform_us;
    transfer_us += times.transfer_us;
    patches += patches_of_shard;
  }
  StageTotals& operator+=(const StageTotals& more) {
    storage_us += more.storage_us;
    decode_us += more.decode_us;
    transform_us += more.transform_us;
    transfer_us += more.transfer_us;
    patches += more.patches;
    return *this;
  }
  std::uint64_t Sum() const { return storage_us + decode_us + transform_us + transfer_us; }
  bool operator==(const StageTotals&) const = default;
};

/// A stage of the workers, as people and programs read it.
struct Stage {
  std::string_view name;
  std::uint64_t StageTotals::*us;
};
inline constexpr std::array<Stage, 4> kStreamStages = {{{"storage", &StageTotals::storage_us},
                                                        {"decode", &StageTotals::decode_us},
                                                        {"transform", &StageTotals::transform_us},
                                                        {"transfer", &StageTotals::transfer_us}}};

}  // namespace patchbay
