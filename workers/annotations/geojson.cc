#include <cmath>

#include "runtime/core/strings.h"
#include "runtime/format/json/json_stream.h"
#include "workers/annotations/annotation.h"

namespace patchbay::workers {
namespace {

/// Depth of geometries within geometries.
constexpr int kMaxCollections = 16;

std::string TypeOf(const Json& object) {
  const auto type = object.is_object() ? object.find("type") : object.end();
  const bool has = object.is_object() && type != object.end() && type->is_string();
  return has ? type->get<std::string>() : std::string();
}

bool IsGeometry(const std::string& type) {
  for (const char* known : {"Polygon", "MultiPolygon", "GeometryCollection", "Point", "MultiPoint",
                            "LineString", "MultiLineString"}) {
    if (type == known) return true;
  }
  return false;
}

/// A text, or the name (or names) of an object; "" without.
std::string NameIn(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return "";
  if (value.contains("name") && value["name"].is_string()) return value["name"];
  if (!value.contains("names") || !value["names"].is_array()) return "";
  std::vector<std::string> names;
  for (const Json& name : value["names"]) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return StrJoin(names, ": ");
}

/// The property of that name, or, where there is none, the member that its parts between dots lead
/// to; null without.
Json PropertyOf(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto whole = object.find(std::string(name));
  if (whole != object.end()) return *whole;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const auto part = object.find(std::string(name.substr(0, dot)));
    if (part != object.end()) return PropertyOf(*part, name.substr(dot + 1));
  }
  return nullptr;
}

/// NameIn, and whole numbers as text.
std::string TextOf(const Json& value) {
  if (value.is_number_integer()) return DumpJson(value);
  if (!value.is_number_float()) return NameIn(value);
  const auto number = value.get<double>();
  const bool is_whole = std::floor(number) == number && std::abs(number) < 1e15;
  return is_whole ? StrCat(static_cast<std::int64_t>(number)) : DumpJson(value);
}

std::string NameOf(const Json& feature, std::string_view class_from) {
  const auto properties = feature.find("properties");
  if (properties != feature.end() && properties->is_object()) {
    if (!class_from.empty()) {
      const std::string name = TextOf(PropertyOf(*properties, class_from));
      return name.empty() ? "unclassified" : name;
    }
    for (const char* key : {"classification", "label", "class", "group"}) {
      const auto found = properties->find(key);
      const std::string name = found == properties->end() ? "" : NameIn(*found);
      if (!name.empty()) return name;
    }
  }
  return "unclassified";
}

class GeoJsonReader {
 public:
  explicit GeoJsonReader(std::string_view class_from) : class_from_(class_from) {}

  StatusOr<Annotations> Read(std::string_view text) {
    out_.format = "geojson";
    const auto take = [this](Json& object) -> StatusOr<bool> {
      if (TypeOf(object) != "Feature") return false;
      PB_RETURN_IF_ERROR(AddFeature(object));
      return true;
    };
    PB_ASSIGN_OR_RETURN(const Json rest, ParseJsonTaking(text, "annotations", take));
    PB_RETURN_IF_ERROR(AddRest(rest));
    return std::move(out_);
  }

 private:
  /// Adds geometries that belong to no feature.
  Status AddRest(const Json& rest) {
    const std::string type = TypeOf(rest);
    if (rest.is_null() || type == "FeatureCollection") {
      const bool has_list =
          rest.is_null() || (rest.contains("features") && rest["features"].is_array());
      return has_list ? absl::OkStatus()
                      : InvalidArgument("a FeatureCollection without a list of features");
    }
    if (IsGeometry(type)) return AddOutline(rest, "unclassified", "the geometry");
    if (!rest.is_array()) {
      return InvalidArgument("not GeoJSON: no type of Feature, collection or geometry");
    }
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i].is_null()) continue;  // a feature
      if (!IsGeometry(TypeOf(rest[i]))) {
        return InvalidArgument("item ", i, ": neither a Feature nor a geometry");
      }
      PB_RETURN_IF_ERROR(AddOutline(rest[i], "unclassified", StrCat("item ", i)));
    }
    return absl::OkStatus();
  }

  Status AddFeature(const Json& feature) {
    const std::string where = StrCat("feature ", features_++);
    const auto geometry = feature.find("geometry");
    if (geometry == feature.end() || geometry->is_null()) {
      ++out_.without_area;
      return absl::OkStatus();
    }
    return AddOutline(*geometry, NameOf(feature, class_from_), where);
  }

  Status AddOutline(const Json& geometry, const std::string& name, const std::string& where) {
    Outline outline{name, where, {}};
    const Status added = AddGeometry(geometry, 0, outline);
    if (!added.ok()) return Annotate(added, where);
    if (outline.polygons.empty()) {
      ++out_.without_area;
      return absl::OkStatus();
    }
    PB_RETURN_IF_ERROR(limits_.AddOutline());
    out_.outlines.push_back(std::move(outline));
    return absl::OkStatus();
  }

  Status AddGeometry(const Json& geometry, int depth, Outline& outline) {
    const std::string type = TypeOf(geometry);
    if (!IsGeometry(type)) return InvalidArgument("geometry of type '", type.substr(0, 50), "'");
    if (type == "GeometryCollection") {
      const auto list = geometry.find("geometries");
      if (list == geometry.end() || !list->is_array() || depth == kMaxCollections) {
        return InvalidArgument(
            "a GeometryCollection without geometries, or within too many others");
      }
      for (const Json& one : *list) PB_RETURN_IF_ERROR(AddGeometry(one, depth + 1, outline));
      return absl::OkStatus();
    }
    const auto coordinates = geometry.find("coordinates");
    if (coordinates == geometry.end() || !coordinates->is_array()) {
      return InvalidArgument("a ", type, " without coordinates");
    }
    if (type == "Polygon") return AddPolygon(*coordinates, outline);
    if (type != "MultiPolygon") return absl::OkStatus();  // no area
    for (const Json& polygon : *coordinates) PB_RETURN_IF_ERROR(AddPolygon(polygon, outline));
    return absl::OkStatus();
  }

  Status AddPolygon(const Json& rings, Outline& outline) {
    if (!rings.is_array() || rings.empty()) return InvalidArgument("a polygon without rings");
    Polygon polygon;
    for (const Json& ring : rings) {
      PB_ASSIGN_OR_RETURN(Ring one, ReadRing(ring));
      polygon.rings.push_back(std::move(one));
    }
    outline.polygons.push_back(std::move(polygon));
    return absl::OkStatus();
  }

  StatusOr<Ring> ReadRing(const Json& list) {
    if (!list.is_array()) return InvalidArgument("a ring that is not a list of points");
    Ring ring;
    for (const Json& point : list) {
      if (!point.is_array() || point.size() < 2 || !point[0].is_number() || !point[1].is_number()) {
        return InvalidArgument("a point that is not [x, y]");
      }
      ring.push_back({point[0].get<double>(), point[1].get<double>()});
      PB_RETURN_IF_ERROR(limits_.Add(ring.back()));
    }
    if (ring.size() > 1 && ring.front() == ring.back()) ring.pop_back();
    if (ring.size() < 3) return InvalidArgument("a polygon ring of only ", ring.size(), " points");
    return ring;
  }

  const std::string_view class_from_;
  Annotations out_;
  AnnotationLimits limits_;
  std::int64_t features_ = 0;
};

}  // namespace

StatusOr<Annotations> ReadGeoJson(std::string_view text, std::string_view class_from) {
  return GeoJsonReader(class_from).Read(text);
}

}  // namespace patchbay::workers
