// Where a stream is.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "runtime/core/ids.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay {

/// A batch of a stream.
struct Position {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;  ///< within the epoch

  auto operator<=>(const Position&) const = default;
  std::string ToString() const { return StrCat(epoch, "/", batch); }
};

inline Position PositionOf(const ShardId& shard) { return {shard.epoch, shard.batch}; }

/// The batch after `at`; the first of the next epoch after an epoch's last.
Position NextPosition(const StreamGeometry& geometry, Position at);

/// The first position at or after `at` in which the rank has patches.
Position SkipEmpty(const StreamGeometry& geometry, std::uint32_t rank, Position at);

}  // namespace patchbay
