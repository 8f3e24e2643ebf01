// Sizes and places along three axes, order z, y, x. Pixels and voxels are one thing: a 2-D image
// has depth 1. Channels are never part of an extent.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay {

/// A size in pixels, or in cells of a grid.
struct Extent {
  std::int64_t z = 1, y = 0, x = 0;

  constexpr Extent() = default;
  constexpr Extent(std::int64_t depth, std::int64_t height, std::int64_t width)
      : z(depth), y(height), x(width) {}

  bool operator==(const Extent&) const = default;
  bool Empty() const { return z <= 0 || y <= 0 || x <= 0; }
  /// z * y * x; the caller has bounded the axes.
  std::int64_t Pixels() const { return Empty() ? 0 : z * y * x; }
  /// No axis of `other` is longer.
  bool Covers(const Extent& other) const { return other.z <= z && other.y <= y && other.x <= x; }
  /// "96 x 512 x 512"; without the depth of 1.
  std::string ToString() const {
    return z == 1 ? StrCat(y, " x ", x) : StrCat(z, " x ", y, " x ", x);
  }
};

/// A 2-D extent.
constexpr Extent Flat(std::int64_t height, std::int64_t width) { return {1, height, width}; }

/// A place in an image or a grid.
struct Point {
  std::int64_t z = 0, y = 0, x = 0;

  constexpr Point() = default;
  constexpr Point(std::int64_t at_z, std::int64_t at_y, std::int64_t at_x)
      : z(at_z), y(at_y), x(at_x) {}

  bool operator==(const Point&) const = default;
  auto operator<=>(const Point&) const = default;
  bool Inside(const Extent& e) const {
    return z >= 0 && y >= 0 && x >= 0 && z < e.z && y < e.y && x < e.x;
  }
  /// "0/3/1"
  std::string ToString(std::string_view separator = "/") const {
    return StrCat(z, separator, y, separator, x);
  }
};

/// Cells of `cell` that cover `whole`, axis by axis.
constexpr Extent CellsOf(const Extent& whole, const Extent& cell) {
  return {(whole.z + cell.z - 1) / cell.z, (whole.y + cell.y - 1) / cell.y,
          (whole.x + cell.x - 1) / cell.x};
}

/// Half of every axis, rounded up: the next level of a pyramid. A depth of 1 stays 1.
constexpr Extent HalfOf(const Extent& e) { return {(e.z + 1) / 2, (e.y + 1) / 2, (e.x + 1) / 2}; }

/// Cell `i` of a grid, counted row-major (x fastest).
constexpr Point CellAt(const Extent& grid, std::int64_t i) {
  return {i / (grid.y * grid.x), i / grid.x % grid.y, i % grid.x};
}
/// The inverse of CellAt.
constexpr std::int64_t IndexOf(const Extent& grid, const Point& cell) {
  return (cell.z * grid.y + cell.y) * grid.x + cell.x;
}

}  // namespace patchbay
