#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

#include <pugixml.hpp>

#include "runtime/core/strings.h"
#include "workers/annotations/annotation.h"

namespace patchbay::workers {
namespace {

/// Corners of the polygon that approximates an ellipse: less than 0.1 px off for axes of up to
/// 8,000 px.
constexpr int kEllipseCorners = 720;
constexpr double kMinMpp = 1e-3, kMaxMpp = 1e3;

std::string_view AttributeOf(const pugi::xml_node& node, const char* name) {
  return node.attribute(name).value();
}

/// The attribute as a number, with the point that XML has whatever the locale; nullopt else.
std::optional<double> NumberOf(const pugi::xml_node& node, const char* name) {
  std::string_view text = AttributeOf(node, name);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Ring RectangleOf(const Vertex& a, const Vertex& b) {
  return {{a.x, a.y}, {b.x, a.y}, {b.x, b.y}, {a.x, b.y}};
}

Ring EllipseOf(const Vertex& a, const Vertex& b) {
  Ring ring;
  for (int i = 0; i < kEllipseCorners; ++i) {
    const double angle = 2 * std::numbers::pi * i / kEllipseCorners;
    ring.push_back({(a.x + b.x) / 2 + std::abs(b.x - a.x) / 2 * std::cos(angle),
                    (a.y + b.y) / 2 + std::abs(b.y - a.y) / 2 * std::sin(angle)});
  }
  return ring;
}

class XmlReader {
 public:
  StatusOr<Annotations> Read(std::string_view text) {
    pugi::xml_document document;
    // No DTD is read, no entity but XML's own five is expanded.
    const pugi::xml_parse_result parsed =
        document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) {
      return InvalidArgument("not XML: ", parsed.description(), " at byte ",
                             static_cast<std::int64_t>(parsed.offset));
    }
    const pugi::xml_node root = document.document_element();
    if (std::strcmp(root.name(), "ASAP_Annotations") == 0) {
      PB_RETURN_IF_ERROR(ReadAsap(root));
    } else if (std::strcmp(root.name(), "Annotations") == 0) {
      PB_RETURN_IF_ERROR(ReadImageScope(root));
    } else {
      return InvalidArgument("XML of <", std::string_view(root.name()).substr(0, 50),
                             ">, not of ASAP or ImageScope");
    }
    return std::move(out_);
  }

 private:
  StatusOr<Vertex> VertexOf(const pugi::xml_node& node) {
    const auto x = NumberOf(node, "X"), y = NumberOf(node, "Y");
    if (!x || !y) return InvalidArgument("a vertex without numbers X and Y");
    const Vertex vertex{*x, *y};
    PB_RETURN_IF_ERROR(limits_.Add(vertex));
    return vertex;
  }

  /// Ordered by their Order, where they have one.
  StatusOr<Ring> CoordinatesOf(const pugi::xml_node& annotation) {
    std::vector<std::pair<double, Vertex>> ordered;
    for (const pugi::xml_node& node : annotation.child("Coordinates").children("Coordinate")) {
      PB_ASSIGN_OR_RETURN(const Vertex vertex, VertexOf(node));
      ordered.emplace_back(NumberOf(node, "Order").value_or(static_cast<double>(ordered.size())),
                           vertex);
    }
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Ring ring;
    for (const auto& [order, vertex] : ordered) ring.push_back(vertex);
    return ring;
  }

  Status ReadAsap(const pugi::xml_node& root) {
    out_.format = "asap";
    std::int64_t number = 0;
    for (const pugi::xml_node& node : root.child("Annotations").children("Annotation")) {
      const std::string where = StrCat("annotation ", number++);
      const std::string_view type = AttributeOf(node, "Type");
      const bool has_area = type == "Polygon" || type == "Spline" || type == "Rectangle";
      const bool is_known =
          has_area || type == "Dot" || type == "PointSet" || type == "Measurement";
      if (!is_known) return InvalidArgument(where, ": type '", type.substr(0, 50), "'");
      auto ring = CoordinatesOf(node);
      if (!ring.ok()) return Annotate(ring.status(), where);
      if (!has_area) {
        ++out_.without_area;
        continue;
      }
      const std::string_view group = AttributeOf(node, "PartOfGroup");
      const bool is_named = !group.empty() && group != "None";
      PB_RETURN_IF_ERROR(
          Add(std::string(is_named ? group : "unclassified"), where, {{std::move(*ring)}, {}}));
    }
    return absl::OkStatus();
  }

  Status Add(std::string name, const std::string& where, Polygon polygon) {
    for (Ring& ring : polygon.rings) {
      if (ring.size() > 1 && ring.front() == ring.back()) ring.pop_back();
      if (ring.size() < 3) {
        return InvalidArgument(where, ": a polygon ring of only ", ring.size(), " points");
      }
    }
    PB_RETURN_IF_ERROR(limits_.AddOutline());
    out_.outlines.push_back({std::move(name), where, {std::move(polygon)}});
    return absl::OkStatus();
  }

  static std::string LayerName(const pugi::xml_node& layer) {
    const std::string_view name = AttributeOf(layer, "Name");
    if (!name.empty()) return std::string(name);
    for (const pugi::xml_node& node : layer.child("Attributes").children("Attribute")) {
      const std::string_view key = AttributeOf(node, "Name"), value = AttributeOf(node, "Value");
      if (!value.empty()) return std::string(value);
      if (!key.empty() && key != "Description") return std::string(key);
    }
    return "";
  }

  /// Empty for a region without area.
  StatusOr<Ring> RegionOf(const pugi::xml_node& region) {
    const std::string_view type = AttributeOf(region, "Type");
    Ring ring;
    for (const pugi::xml_node& node : region.child("Vertices").children()) {
      const bool is_vertex =
          std::strcmp(node.name(), "Vertex") == 0 || std::strcmp(node.name(), "V") == 0;
      if (!is_vertex) continue;
      PB_ASSIGN_OR_RETURN(const Vertex vertex, VertexOf(node));
      ring.push_back(vertex);
    }
    if (type == "3" || type == "4" || type == "5" || type == "Ruler" || type == "Arrow" ||
        type == "Pin" || ring.size() == 1) {
      return Ring();
    }
    const bool is_ellipse = type == "2" || type == "Ellipse";
    if (is_ellipse && ring.size() >= 2) {
      double x0 = ring[0].x, x1 = x0, y0 = ring[0].y, y1 = y0;
      for (const Vertex& v : ring) {
        x0 = std::min(x0, v.x), x1 = std::max(x1, v.x);
        y0 = std::min(y0, v.y), y1 = std::max(y1, v.y);
      }
      return EllipseOf({x0, y0}, {x1, y1});
    }
    if (ring.size() == 2 && (type == "1" || type == "Rectangle")) {
      return RectangleOf(ring[0], ring[1]);
    }
    return ring;
  }

  Status ReadLayer(const pugi::xml_node& layer, std::int64_t number) {
    const std::string name = LayerName(layer);
    const std::size_t first = out_.outlines.size();
    std::vector<Ring> negative;
    std::int64_t region_number = 0;
    for (const pugi::xml_node& region : layer.child("Regions").children("Region")) {
      const std::string where = StrCat("layer ", number, " region ", region_number++);
      auto ring = RegionOf(region);
      if (!ring.ok()) return Annotate(ring.status(), where);
      if (ring->empty()) {
        ++out_.without_area;
      } else if (AttributeOf(region, "NegativeROA") == "1") {
        if (ring->size() < 3) {
          return InvalidArgument(where, ": a polygon ring of only ", ring->size(), " points");
        }
        negative.push_back(std::move(*ring));
      } else {
        const std::string_view text = AttributeOf(region, "Text");
        std::string called = !name.empty() ? name : std::string(text);
        if (called.empty()) called = "unclassified";
        PB_RETURN_IF_ERROR(Add(std::move(called), where, {{std::move(*ring)}, {}}));
      }
    }
    for (std::size_t i = first; i < out_.outlines.size(); ++i) {
      out_.outlines[i].polygons[0].cutouts = negative;
    }
    return absl::OkStatus();
  }

  Status ReadImageScope(const pugi::xml_node& root) {
    out_.format = "imagescope";
    if (!AttributeOf(root, "MicronsPerPixel").empty()) {
      out_.mpp = NumberOf(root, "MicronsPerPixel");
      if (out_.mpp == 0.0) out_.mpp.reset();  // how it says that it does not know
      if (out_.mpp && (*out_.mpp < kMinMpp || *out_.mpp > kMaxMpp)) {
        return InvalidArgument("MicronsPerPixel ", *out_.mpp);
      }
    }
    std::int64_t number = 0;
    for (const pugi::xml_node& layer : root.children("Annotation")) {
      PB_RETURN_IF_ERROR(ReadLayer(layer, number++));
    }
    return absl::OkStatus();
  }

  Annotations out_;
  AnnotationLimits limits_;
};

}  // namespace

StatusOr<Annotations> ReadAnnotationXml(std::string_view text) { return XmlReader().Read(text); }

}  // namespace patchbay::workers
