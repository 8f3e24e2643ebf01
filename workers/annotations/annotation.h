// A pathologist's drawing as values: outlines in pixels of the slide's finest level, with the names
// they were given. The values that the readers return are safe to compute with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// The side of the line from `a` to `b` that `p` lies on: above 0 right of it, 0 on the line.
inline double SideOf(const Vertex& a, const Vertex& b, const Vertex& p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

using Ring = std::vector<Vertex>;  ///< closed: the last vertex is joined to the first

/// The area within an odd number of `rings` (an outline and its holes), without the area of
/// `cutouts`.
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
  std::optional<double> mpp;      ///< um per pixel of the slide, if the file states it
};

/// Counts the annotations that a reader makes, and refuses more than the limits.
class AnnotationLimits {
 public:
  /// InvalidArgument for a coordinate that is not finite or too far out, or for one too many.
  Status Add(const Vertex& vertex);
  Status AddOutline();

 private:
  std::size_t outlines_ = 0, vertices_ = 0;
};

enum class AnnotationFormat { kGeoJson, kXml, kTiff, kUnknown };

/// The format by the file's first bytes, never by its name.
AnnotationFormat FormatOf(std::string_view first_bytes);

/// The outlines of a GeoJSON, ASAP or ImageScope text. InvalidArgument with the fault and its
/// place, without the file's name: another format, malformed, beyond a limit, no annotation; a
/// `class_from` for an XML.
StatusOr<Annotations> ReadAnnotations(std::string_view text, std::string_view class_from = "");

/// GeoJSON: a FeatureCollection, a Feature, a geometry or a list of them, as QuPath and others
/// write them. The name of an outline is the first of properties.classification.name (or .names),
/// .classification, .label, .class and .group that exists. With a `class_from` it is that property,
/// or that member of one ("metadata.grade"): a text, a number, or an object with a name.
StatusOr<Annotations> ReadGeoJson(std::string_view text, std::string_view class_from = "");

/// ASAP_Annotations or Annotations (Aperio ImageScope, HALO). ASAP outlines are called by their
/// group, ImageScope's by the name of their layer, else by the layer's attribute, else by the
/// region's text. Regions of negative area are cut out of the others of their layer.
StatusOr<Annotations> ReadAnnotationXml(std::string_view text);

}  // namespace patchbay::workers
