// A box of pixels or voxels: half-open, origin + shape, order z, y, x. Channels are never part of a
// box.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/strings.h"

namespace patchbay {

/// Half-open box [origin, origin + shape) in pixels of one level. A 2-D image has z = 0 and
/// depth 1.
struct Box {
  std::int64_t z = 0, y = 0, x = 0;
  std::int64_t depth = 1, height = 0, width = 0;

  bool operator==(const Box&) const = default;
  bool Empty() const { return depth <= 0 || height <= 0 || width <= 0; }
  std::int64_t Pixels() const { return Empty() ? 0 : depth * height * width; }
  Point Origin() const { return {z, y, x}; }
  Extent Shape() const { return {depth, height, width}; }
  bool Contains(const Box& b) const {
    return b.z >= z && b.y >= y && b.x >= x && b.z + b.depth <= z + depth &&
           b.y + b.height <= y + height && b.x + b.width <= x + width;
  }
  std::string ToString() const {
    return StrCat("[z ", z, "+", depth, ", y ", y, "+", height, ", x ", x, "+", width, "]");
  }
};

/// A box of that shape at `origin`.
inline Box BoxAt(const Point& origin, const Extent& shape) {
  return Box{origin.z, origin.y, origin.x, shape.z, shape.y, shape.x};
}

/// Everything inside an image of that extent.
inline Box WholeOf(const Extent& extent) { return BoxAt({}, extent); }

/// A 2-D box at (y, x).
inline Box Box2D(std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width) {
  return Box{0, y, x, 1, height, width};
}

/// The overlap of two boxes; empty (shape 0) when they do not meet.
Box Intersect(const Box& a, const Box& b);

}  // namespace patchbay
