// Where the patches about the cells of a set lie: each axis by itself.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/extent.h"
#include "runtime/model/positions/cell_set.h"

namespace patchbay::plan {

/// `value` pixels of an axis of `from`, in one of `to`, towards minus infinity: a patch that
/// reaches out to the left keeps its size.
inline std::int64_t Scaled(std::int64_t value, std::int64_t from, std::int64_t to) {
  if (from == to) return value;  // level 0: no long division for each of millions of places
  const __int128 product = static_cast<__int128>(value) * to;
  const __int128 quotient = product / from;
  return static_cast<std::int64_t>(quotient - (product % from < 0 ? 1 : 0));
}

/// The patches of cells along one axis.
struct PatchAxis {
  std::int64_t full = 1, level = 1;  ///< the same length, in pixels of level 0 and of the level
  std::int64_t source = 1;           ///< pixels of the level that become one patch
  /// From cell to cell, in pixels of the level; of level 0 where patches lie about cells' centres.
  std::int64_t step = 1;
  /// Pixels of the level before the one under the patch's centre; none: patches begin with cells.
  std::optional<std::int64_t> before_centre;

  /// Where the patch of a cell begins, in pixels of the level.
  std::int64_t Origin(std::int64_t cell) const {
    if (!before_centre) return cell * step;
    return Scaled(CentreOf(cell, step), full, level) - *before_centre;
  }
  /// The same, and where it ends, in pixels of level 0.
  std::int64_t Begin(std::int64_t cell) const { return Scaled(Origin(cell), level, full); }
  std::int64_t End(std::int64_t cell) const { return Scaled(Origin(cell) + source, level, full); }
};

struct PatchLattice {
  PatchAxis z, y, x;

  /// Where the patch of a cell begins, in pixels of the level.
  Point Origin(const Point& cell) const {
    return {z.Origin(cell.z), y.Origin(cell.y), x.Origin(cell.x)};
  }
};

}  // namespace patchbay::plan
