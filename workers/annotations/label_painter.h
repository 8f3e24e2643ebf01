// Paints outlines as pixels. The rule: a pixel belongs to a polygon when its centre lies within an
// odd number of the polygon's rings (of two pixels whose centres an edge runs through, the one to
// the right or below is inside); computed in double. Where polygons overlap, the one painted last
// wins. notes/0001-filling.md explains why no library is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "workers/annotations/annotation.h"

namespace patchbay::workers {

/// Whether two edges of a polygon's rings cross (not merely touch). nullopt: not determined,
/// because too many edges lie close together.
std::optional<bool> CrossesItself(const Polygon& polygon);

struct PaintedPolygon {
  std::uint8_t value = 0;
  Polygon polygon;  ///< in pixels of the level that is painted
};

/// Paints tiles of one level, row by row. Not thread-safe.
class LabelPainter {
 public:
  /// `polygons` in the order of painting. Tiles are `side` pixels a side; where no
  /// polygon lies, pixels are `ground`.
  LabelPainter(std::vector<PaintedPolygon> polygons, const Extent& level, std::int64_t side,
               std::uint8_t ground);
  ~LabelPainter();
  LabelPainter(const LabelPainter&) = delete;
  LabelPainter& operator=(const LabelPainter&) = delete;

  /// A tile's pixels into `out` (side * side bytes, rows of `side`), or the one value that all of
  /// them have, and then `out` may hold anything. Rows of tiles in rising order.
  std::optional<std::uint8_t> Paint(std::int64_t row, std::int64_t column, std::uint8_t* out);

 private:
  struct Bounds {
    double left, top, right, bottom;
  };
  class Canvas;

  void BeginRow(std::int64_t row);
  void PaintOne(const PaintedPolygon& painted, const Box& tile, Canvas& canvas);

  std::vector<PaintedPolygon> polygons_;
  std::vector<Bounds> bounds_;
  std::vector<std::uint32_t> by_top_;  ///< polygons by their topmost point
  Extent grid_;
  std::int64_t side_;
  std::uint8_t ground_;
  std::unique_ptr<Canvas> canvas_, coverage_;
  std::vector<std::uint8_t> covered_;  ///< pixels of coverage_

  std::int64_t row_ = -1;
  std::size_t next_ = 0;                           ///< index in by_top_
  std::vector<std::uint32_t> active_;              ///< polygons that reach the row or below
  std::vector<PaintedPolygon> row_polygons_;       ///< polygons near the row
  std::vector<std::vector<std::uint32_t>> tiles_;  ///< per column, into row_polygons_, in order
};

}  // namespace patchbay::workers
