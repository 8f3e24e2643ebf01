#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/core/strings.h"
#include "workers/annotations/annotation.h"
#include "workers/annotations/label_painter.h"
#include "workers/jobs/labels/label_raster.h"

namespace patchbay::workers {
namespace {

/// Two scanners' statements of one resolution differ by less.
constexpr double kMppTolerance = 0.05;
constexpr std::size_t kUnknownNamesListed = 10;

Status RefuseAnnotations(std::string_view cause) {
  return InvalidArgument("import labels: annotations: ", cause);
}

Status CheckResolution(const Annotations& annotations, const LabelledImage& image) {
  const std::optional<double> stored = image.spacing.MeanMpp();
  if (!annotations.mpp || !stored) return absl::OkStatus();
  const double slide = *stored * (image.ScaleY() + image.ScaleX()) / 2;
  if (std::abs(*annotations.mpp / slide - 1) <= kMppTolerance) return absl::OkStatus();
  return RefuseAnnotations(StrCat("drawn at ", *annotations.mpp,
                                  " um per pixel, and the slide has ",
                                  std::round(slide * 1e4) / 1e4, ": another slide's annotations"));
}

/// Says which names the table lacks, or OK.
Status CheckNames(const Annotations& annotations, const plan::ClassTable& table,
                  const std::string& class_from) {
  std::map<std::string, std::pair<std::int64_t, std::string>> unknown;
  for (const Outline& outline : annotations.outlines) {
    if (plan::MeaningOf(table, outline.name).meaning != plan::NameMeaning::kUnknown) continue;
    auto& [count, where] = unknown[outline.name];
    if (++count == 1) where = outline.where;
  }
  if (unknown.empty()) return absl::OkStatus();
  std::string text;
  std::size_t listed = 0;
  for (const auto& [name, seen] : unknown) {
    if (++listed > kUnknownNamesListed) break;
    const std::string nearest = Nearest(name, NamesOf(table));
    text +=
        StrCat(text.empty() ? "" : ", ", "'", name, "' (", seen.first, " times, first as ",
               seen.second, nearest.empty() ? "" : StrCat("; did you mean '", nearest, "'?"), ")");
  }
  return RefuseAnnotations(
      StrCat("classes that the table does not have: ", text,
             ": add them as classes or aliases, or under skip",
             !unknown.contains(std::string(plan::kUnclassified)) ? ""
             : class_from.empty()
                 ? "; 'unclassified' are objects without a classification: give them "
                   "one in QuPath, or import their names with --class-from name"
                 : StrCat("; 'unclassified' are objects without the property '", class_from, "'")));
}

struct Reach {
  double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300;

  void Add(const Polygon& polygon) {
    for (const Ring& ring : polygon.rings) {
      for (const Vertex& v : ring) {
        left = std::min(left, v.x), right = std::max(right, v.x);
        top = std::min(top, v.y), bottom = std::max(bottom, v.y);
      }
    }
  }
  bool Misses(const Extent& e) const {
    return right <= 0 || bottom <= 0 || left >= static_cast<double>(e.x) ||
           top >= static_cast<double>(e.y);
  }
  bool Leaves(const Extent& e) const {
    return left < 0 || top < 0 || right > static_cast<double>(e.x) ||
           bottom > static_cast<double>(e.y);
  }
};

/// Calls `change(vertex)` for every vertex.
template <typename Change>
void ForEachVertex(Polygon& polygon, Change&& change) {
  for (auto* rings : {&polygon.rings, &polygon.cutouts}) {
    for (Ring& ring : *rings) {
      for (Vertex& v : ring) change(v);
    }
  }
}

void Scale(Polygon& polygon, double y, double x) {
  ForEachVertex(polygon, [&](Vertex& v) { v = {v.x * x, v.y * y}; });
}

void Move(std::vector<Outline>& outlines, const Point& by) {
  if (by == Point()) return;
  const auto y = static_cast<double>(by.y), x = static_cast<double>(by.x);
  for (Outline& outline : outlines) {
    for (Polygon& polygon : outline.polygons) {
      ForEachVertex(polygon, [&](Vertex& v) { v = {v.x + x, v.y + y}; });
    }
  }
}

/// Polygons in the order of painting: regions of interest, then class by class.
class PaintOrder {
 public:
  PaintOrder(const RasterRequest& request, results::DrawnLabelReport& report)
      : request_(request), report_(report), layers_(request.classes.classes.size() + 1) {
    report_.classes.resize(request.classes.classes.size());
  }

  void Add(Outline& outline) {
    const plan::ClassTable& table = request_.classes;
    const plan::NamedClass named = plan::MeaningOf(table, outline.name);
    if (named.meaning == plan::NameMeaning::kSkipped) {
      ++report_.skipped;
      return;
    }
    if (!OnSlide(outline)) return;
    const bool is_class = named.meaning == plan::NameMeaning::kClass;
    const plan::LabelClass* class_of =
        is_class ? &table.classes[named.index] : table.Find(table.background);
    if (is_class) ++report_.classes[named.index].outlines;
    auto& layer = layers_[is_class ? named.index + 1 : 0];
    for (Polygon& polygon : outline.polygons) {
      if (CrossesItself(polygon).value_or(false)) ++report_.self_crossing;
      Scale(polygon, request_.image.ScaleY(), request_.image.ScaleX());
      layer.push_back({static_cast<std::uint8_t>(class_of->value), std::move(polygon)});
    }
  }

  std::vector<PaintedPolygon> All() {
    std::vector<PaintedPolygon> all;
    for (auto& layer : layers_) {
      for (PaintedPolygon& painted : layer) all.push_back(std::move(painted));
    }
    return all;
  }

 private:
  bool OnSlide(const Outline& outline) {
    Reach reach;
    for (const Polygon& polygon : outline.polygons) reach.Add(polygon);
    if (reach.Misses(request_.image.source)) {
      ++report_.outside;
      return false;
    }
    if (reach.Leaves(request_.image.source)) ++report_.clipped;
    return true;
  }

  const RasterRequest& request_;
  results::DrawnLabelReport& report_;
  std::vector<std::vector<PaintedPolygon>> layers_;
};

class OutlineRaster final : public LabelRaster {
 public:
  OutlineRaster(const RasterRequest& request, Annotations annotations) {
    report_.format = annotations.format;
    report_.without_area = annotations.without_area;
    const Point offset = OffsetOf(request.origin, request.image, annotations.format);
    report_.offset = {offset.x, offset.y};
    Move(annotations.outlines, offset);
    PaintOrder order(request, report_);
    for (Outline& outline : annotations.outlines) order.Add(outline);
    const plan::ClassTable& table = request.classes;
    const int ground = table.exhaustive ? table.Find(table.background)->value : plan::kIgnoreClass;
    painter_ = std::make_unique<LabelPainter>(order.All(), request.image.levels[0],
                                              zarr::LabelSettings().chunk.x,
                                              static_cast<std::uint8_t>(ground));
  }

  StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) override {
    return painter_->Paint(chunk.y, chunk.x, out);
  }

 private:
  std::unique_ptr<LabelPainter> painter_;
};

}  // namespace

StatusOr<std::unique_ptr<LabelRaster>> DrawOutlines(const RasterRequest& request,
                                                    std::string_view text) {
  StatusOr<Annotations> annotations = ReadAnnotations(text, request.class_from);
  if (!annotations.ok()) return RefuseAnnotations(MessageOf(annotations.status()));
  PB_RETURN_IF_ERROR(CheckResolution(*annotations, request.image));
  PB_RETURN_IF_ERROR(CheckNames(*annotations, request.classes, request.class_from));
  const auto outlines = static_cast<std::int64_t>(annotations->outlines.size());
  auto drawing = std::make_unique<OutlineRaster>(request, std::move(*annotations));
  const results::DrawnLabelReport& report = drawing->report();
  if (outlines > report.skipped && report.outside == outlines - report.skipped) {
    return RefuseAnnotations(StrCat("none of its ", report.outside, " outlines lies on the slide (",
                                    request.image.source.x, " x ", request.image.source.y,
                                    " pixels): another slide's annotations"));
  }
  return drawing;
}

}  // namespace patchbay::workers
