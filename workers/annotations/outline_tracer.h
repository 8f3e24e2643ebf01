// Pixels back to outlines: the lines between the pixels of a class and all others.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "workers/annotations/annotation.h"

namespace patchbay::workers {

struct TracedPolygon {
  std::uint8_t value = 0;
  std::vector<Ring> rings;  ///< the outline, then its holes; not closed
};

/// Pixels within the outline, less those within its holes.
double AreaOf(const TracedPolygon& polygon);
/// Pixels within a ring; negative for a hole.
double SignedAreaOf(const Ring& ring);
/// By even and odd.
bool Encloses(const Ring& ring, const Vertex& point);

/// Takes the rows of a label image from the top down. Vertices lie midway between the centres of
/// two neighbouring pixels of which one has the class, so no line is further than half a pixel from
/// the outline that the pixels were painted from, and painting it again gives the same pixels.
/// Pixels that touch only at a corner become two outlines.
class OutlineTracer {
 public:
  /// Pixels of `ignored` are of no class.
  OutlineTracer(std::int64_t width, std::uint8_t ignored);

  /// The next row, `width` bytes. ResourceExhausted when outlines are too long to be held.
  Status AddRow(const std::uint8_t* row);
  /// After the last row: by value, then from top to bottom.
  std::vector<TracedPolygon> Finish();

 private:
  void AddCorner(std::int64_t x);
  void AddSegments(std::int64_t x, std::uint8_t value, unsigned which);
  Ring TakeRing(std::uint64_t start);

  const std::int64_t width_;
  const std::uint8_t ignored_;
  std::int64_t y_ = 0;  ///< the lower of the two rows
  /// Two rows with one ignored pixel on either side.
  std::vector<std::uint8_t> above_, below_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> next_;  ///< from point to point
};

/// Takes vertices out of the rings as long as every one that is gone lies within `tolerance` pixels
/// of the line in its place. Rings of a valid polygon stay valid: they neither cross nor touch
/// themselves or one another, and every hole stays within its outline. Rings keep three vertices.
void Straighten(TracedPolygon& polygon, double tolerance);

}  // namespace patchbay::workers
