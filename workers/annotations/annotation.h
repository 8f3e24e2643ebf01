// A pathologist's drawing as values: outlines in pixels of the slide's finest level, with the names
// they were given. Whatever the readers return is safe to compute with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// Largest file that is read.
inline constexpr std::size_t kMaxAnnotationBytes = std::size_t{1} << 30;
/// Coordinates further out are not a pixel of any slide.
inline constexpr double kMaxCoordinate = 4e6;
inline constexpr std::size_t kMaxOutlines = 2'000'000;
inline constexpr std::size_t kMaxVertices = 50'000'000;

/// In pixels; (0, 0) is the corner of the first pixel, whose centre is (0.5, 0.5).
struct Vertex {
  double x = 0, y = 0;
  bool operator==(const Vertex&) const = default;
};

using Ring = std::vector<Vertex>;  ///< closed: the last vertex is joined to the first

/// Everything that lies within an odd number of `rings` (an outline and its holes), less what lies
/// within `cutouts`.
struct Polygon {
  std::vector<Ring> rings;
  std::vector<Ring> cutouts;
  bool operator==(const Polygon&) const = default;
};

/// One drawing: the union of its polygons.
struct Outline {
  std::string name;   ///< the class it was given; "unclassified" without one
  std::string where;  ///< "feature 3", for messages
  std::vector<Polygon> polygons;
};

struct Annotations {
  std::string format;  ///< "geojson", "asap", "imagescope"
  std::vector<Outline> outlines;
  std::int64_t without_area = 0;  ///< points, lines and rulers, which are left out
  std::optional<double> mpp;      ///< of the slide, where the file says it
};

/// Adds up what a reader has made and refuses more than the limits.
class AnnotationLimits {
 public:
  /// InvalidArgument for a coordinate that is not finite or too far out, or for one too many.
  Status Add(const Vertex& vertex);
  Status AddOutline();

 private:
  std::size_t outlines_ = 0, vertices_ = 0;
};

}  // namespace patchbay::workers
