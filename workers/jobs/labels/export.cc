// Exports a label set for annotation programs: as outlines, or as a mask.
#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/os/file.h"
#include "workers/annotations/outline_tracer.h"
#include "workers/jobs/labels/export_mask.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/opened_labels.h"
#include "workers/jobs/labels/origin.h"
#include "workers/jobs/task/progress.h"

namespace patchbay::workers {
namespace {

/// Rows of pixels decoded at a time.
constexpr std::int64_t kRowsAtOnce = 512;

StatusOr<std::vector<TracedPolygon>> Trace(TaskContext& context, const OpenedLabels& labels) {
  const Extent size = labels.image.levels[0];
  PB_ASSIGN_OR_RETURN(LabelRowReader reader,
                      LabelRowReader::Open(context.allowed, labels, ProgressOf(context)));
  OutlineTracer tracer(size.x, zarr::kIgnoreLabel);
  for (std::int64_t y = 0; y < size.y; y += kRowsAtOnce) {
    const std::int64_t height = std::min(kRowsAtOnce, size.y - y);
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(const std::uint8_t* rows, reader.Read(y, height));
    for (std::int64_t i = 0; i < height; ++i) {
      PB_RETURN_IF_ERROR(tracer.AddRow(rows + i * size.x));
    }
    context.AddProgress();
  }
  return tracer.Finish();
}

/// `from`: where the file's coordinates begin on the slide.
void PutRing(const Ring& ring, const LabelledImage& image, const Point& from, std::string& out) {
  const double y = 1 / image.ScaleY(), x = 1 / image.ScaleX();
  const auto top = static_cast<double>(from.y), left = static_cast<double>(from.x);
  out += "[";
  for (std::size_t i = 0; i <= ring.size(); ++i) {  // closed: the first vertex again
    const Vertex& v = ring[i % ring.size()];
    out += StrCat(i == 0 ? "" : ",", "[", v.x * x - left, ",", v.y * y - top, "]");
  }
  out += "]";
}

std::string GeoJsonOf(const OpenedLabels& labels, const std::vector<TracedPolygon>& polygons,
                      const Point& from) {
  std::array<std::string, 256> names;
  for (const plan::LabelClass& one : labels.classes.classes) {
    names[static_cast<std::size_t>(one.value)] = one.name;
  }
  std::string out = R"({"type":"FeatureCollection","features":[)";
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    const TracedPolygon& polygon = polygons[i];
    const std::string& name = names[polygon.value];
    const Json properties = {
        {"objectType", "annotation"},
        {"classification", {{"name", name.empty() ? StrCat(int{polygon.value}) : name}}}};
    out += StrCat(i == 0 ? "\n" : ",\n", R"({"type":"Feature","properties":)", DumpJson(properties),
                  R"(,"geometry":{"type":"Polygon","coordinates":[)");
    for (std::size_t r = 0; r < polygon.rings.size(); ++r) {
      if (r > 0) out += ",";
      PutRing(polygon.rings[r], labels.image, from, out);
    }
    out += "]}}";
  }
  return out + "\n]}\n";
}

StatusOr<Json> ExportOutlines(TaskContext& context, const OpenedLabels& labels,
                              const std::string& named, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const Origin origin, OriginOf(named));
  const Point from = OffsetOf(origin, labels.image, "geojson");
  PB_ASSIGN_OR_RETURN(const std::vector<TracedPolygon> polygons, Trace(context, labels));
  const std::string text = GeoJsonOf(labels, polygons, from);
  context.AddProgress();
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, path, AsBytes(text)));
  return Json{{"outlines", polygons.size()},
              {"bytes", text.size()},
              {"offset", Json::array({from.x, from.y})}};
}

StatusOr<TaskOutput> Export(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string target,
                      JsonString(context.manifest, "out", "export labels"));
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<LabelsExportOptions>(context.payload, "export labels"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(target));
  PB_ASSIGN_OR_RETURN(const OpenedLabels labels, OpenLabels(context, options.set));
  Json report;
  if (options.to == "tiff") {
    PB_ASSIGN_OR_RETURN(report["bytes"], ExportMask(context, labels, path));
  } else {
    PB_ASSIGN_OR_RETURN(report, ExportOutlines(context, labels, options.origin, path));
  }
  report["digest"] = labels.set.digest.Hex();
  TaskOutput output;
  output.result = DumpJson(report);
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunLabelsExport(TaskContext& context) { return Export(context); }

}  // namespace patchbay::workers
