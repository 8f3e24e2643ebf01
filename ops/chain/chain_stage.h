// Brings the pixels of finished rows together, in order, so that a row maker finds them contiguous.
// A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/geometry/patch_maps.h"

namespace patchbay::ops {

/// Finished rows staged at once when the map transposes.
inline constexpr std::int64_t kStageRows = 16;
/// Bytes a staged row may be overwritten past its end.
inline constexpr std::int64_t kStageSlack = 64;

/// Rows [first, first + count) of the finished patch as interleaved uint8, row r at
/// stage + r * stage_row_bytes. `source` is uint8; stage_row_bytes >= width * channels +
/// kStageSlack.
void StageRows(const Strided& source, const WindowMap& map, std::int64_t first, std::int64_t count,
               std::uint8_t* stage, std::int64_t stage_row_bytes);

/// A finished row as it lies in the source: its leftmost source pixel, and whether it is wanted
/// from the right. nullptr when the map transposes or the pixels are not contiguous.
struct RowInSource {
  const std::uint8_t* row = nullptr;
  bool mirrored = false;
};
RowInSource FindRow(const Strided& source, const WindowMap& map, std::int64_t row);

/// Mirrors the pixels of a slice where they lie, as `map` would, which does not transpose and takes
/// the whole slice. `stage` has room for two rows of width * channels + kStageSlack bytes.
void MirrorInPlace(const Strided& slice, const WindowMap& map, std::uint8_t* stage);

}  // namespace patchbay::ops
