#include <algorithm>
#include <array>

#include "runtime/core/counted.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/annotations/outline_tracer.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/labels/mean_probability.h"
#include "workers/jobs/labels/origin.h"
#include "workers/jobs/task/task.h"
#include "workers/plots/preview_sheet.h"

namespace patchbay::workers {
namespace {

/// Rows of pixels decoded at a time.
constexpr std::int64_t kTracedRowsAtOnce = 512;
/// QuPath's own names, so that its columns and ours are one.
constexpr std::string_view kArea = "Area \u00b5m^2", kAreaInPixels = "Area px^2";
constexpr std::string_view kMeanProbability = "Mean probability";

StatusOr<std::vector<TracedPolygon>> Trace(TaskContext& context, const OpenedLabels& labels) {
  const Extent size = labels.image.levels[0];
  PB_ASSIGN_OR_RETURN(LabelRowReader reader,
                      LabelRowReader::Open(context.allowed, labels, 0, ProgressOf(context)));
  OutlineTracer tracer(size.x, UncoveredClass(labels.classes));
  for (std::int64_t y = 0; y < size.y; y += kTracedRowsAtOnce) {
    const std::int64_t height = std::min(kTracedRowsAtOnce, size.y - y);
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(const std::uint8_t* rows, reader.Read(y, height));
    for (std::int64_t i = 0; i < height; ++i) {
      PB_RETURN_IF_ERROR(tracer.AddRow(rows + i * size.x));
    }
    context.AddProgress();
  }
  return tracer.Finish();
}

/// Side and area of a pixel of the store's finest level, where the slide has them.
struct PixelSize {
  std::optional<double> um, um2;
};

PixelSize PixelSizeOf(const LabelledImage& image) {
  const auto& [z, y, x] = image.spacing;
  if (!y || !x) return {};
  return {image.spacing.MeanMpp(), y->Micrometres() * x->Micrometres()};
}

/// The options in pixels.
struct Limits {
  double tolerance = 0, area = 0;
};

StatusOr<Limits> LimitsOf(const LabelsExportOptions& options, const LabelledImage& image) {
  if (!options.smooth && !options.min_area) return Limits();
  const PixelSize pixel = PixelSizeOf(image);
  if (!pixel.um) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "export labels", image.store,
                      "it does not state um/px, which --smooth and --min-area need; `patchbay "
                      "ingest --assume-mpp` records them");
  }
  return Limits{options.smooth.value_or(0) / *pixel.um, options.min_area.value_or(0) / *pixel.um2};
}

/// Leaves out holes, then outlines, of less than `area` pixels.
void LeaveOutSmall(double area, std::vector<TracedPolygon>& polygons) {
  for (TracedPolygon& polygon : polygons) {
    const auto is_small = [area](const Ring& hole) { return -SignedAreaOf(hole) < area; };
    polygon.rings.erase(std::remove_if(polygon.rings.begin() + 1, polygon.rings.end(), is_small),
                        polygon.rings.end());
  }
  std::erase_if(polygons, [area](const TracedPolygon& one) { return AreaOf(one) < area; });
}

/// Writes features. `from`: where the file's coordinates begin on the slide.
class FeatureWriter {
 public:
  FeatureWriter(const OpenedLabels& labels, const patchbay::Point& from)
      : labels_(labels), pixel_(PixelSizeOf(labels.image)), from_(from) {
    for (const plan::LabelClass& one : labels.classes.classes) {
      std::string& name = names_[static_cast<std::size_t>(one.value)];
      if (name.empty()) name = one.name;
    }
  }

  /// `polygon` as it was traced: its id and its measurements are those of the pixels, however it is
  /// drawn.
  std::string Feature(TracedPolygon polygon, double tolerance, std::optional<double> mean) const {
    const std::string traced = Coordinates(polygon);
    const std::string& known = names_[polygon.value];
    const std::string name = known.empty() ? StrCat(int{polygon.value}) : known;
    const double area = AreaOf(polygon);
    if (tolerance > 0) Straighten(polygon, tolerance);
    const Color color = ClassColor(polygon.value);
    Json measurements = pixel_.um2 ? Json{{std::string(kArea), area * *pixel_.um2}}
                                   : Json{{std::string(kAreaInPixels), area * SlidePixels()}};
    if (mean) measurements[std::string(kMeanProbability)] = *mean;
    const Json properties = {
        {"objectType", "annotation"},
        {"classification", {{"name", name}, {"color", {color.red, color.green, color.blue}}}},
        {"measurements", std::move(measurements)}};
    return StrCat(R"({"type":"Feature","id":")", IdOf(name, traced), R"(","properties":)",
                  DumpJson(properties), R"(,"geometry":{"type":"Polygon","coordinates":)",
                  tolerance > 0 ? Coordinates(polygon) : traced, "}}");
  }

 private:
  /// Pixels of the slide in one of the store.
  double SlidePixels() const { return 1 / (labels_.image.ScaleY() * labels_.image.ScaleX()); }

  std::string Coordinates(const TracedPolygon& polygon) const {
    const double y = 1 / labels_.image.ScaleY(), x = 1 / labels_.image.ScaleX();
    const auto top = static_cast<double>(from_.y), left = static_cast<double>(from_.x);
    std::string out;
    for (const Ring& ring : polygon.rings) {
      out += out.empty() ? "[[" : ",[";
      for (std::size_t i = 0; i <= ring.size(); ++i) {  // closed: the first vertex again
        const Vertex& v = ring[i % ring.size()];
        out += StrCat(i == 0 ? "" : ",", "[", v.x * x - left, ",", v.y * y - top, "]");
      }
      out += "]";
    }
    return out + "]";
  }

  /// A UUID by content (RFC 9562, version 8).
  std::string IdOf(const std::string& name, const std::string& traced) const {
    std::string hex =
        Sha256Of(StrCat(labels_.image.pixel_digest, "\n", name, "\n", traced)).Hex().substr(0, 32);
    hex[12] = '8';
    hex[16] = "89ab"[hex[16] % 4];
    for (const std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
    return hex;
  }

  const OpenedLabels& labels_;
  const PixelSize pixel_;
  const patchbay::Point from_;
  std::array<std::string, 256> names_;
};

}  // namespace

StatusOr<Json> ExportOutlines(TaskContext& context, const OpenedLabels& labels,
                              const LabelsExportOptions& options, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const Origin origin, OriginOf(options.origin));
  PB_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(options, labels.image));
  const patchbay::Point from = OffsetOf(origin, labels.image, "geojson");
  PB_ASSIGN_OR_RETURN(std::vector<TracedPolygon> polygons, Trace(context, labels));
  LeaveOutSmall(limits.area, polygons);
  PB_ASSIGN_OR_RETURN(const auto means, MeanProbabilities(context, labels, polygons));
  const FeatureWriter writer(labels, from);
  std::string text = R"({"type":"FeatureCollection","features":[)";
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    PB_RETURN_IF_ERROR(StepOf(context));
    text += i == 0 ? "\n" : ",\n";
    text += writer.Feature(std::move(polygons[i]), limits.tolerance, means[i]);
  }
  text += "\n]}\n";
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, path, AsBytes(text)));
  return Json{{"content", Counted(polygons.size(), "outline")},
              {"outlines", polygons.size()},
              {"bytes", text.size()},
              {"offset", Json::array({from.x, from.y})}};
}

}  // namespace patchbay::workers
