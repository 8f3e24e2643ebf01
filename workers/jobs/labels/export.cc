// A label set back to outlines that annotation programs read.
#include <algorithm>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/plan/class_table.h"
#include "runtime/zarr/label_sets.h"
#include "runtime/zarr/label_writer.h"
#include "workers/access/planned_images.h"
#include "workers/annotations/outline_tracer.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/labels/labels.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

/// Rows of pixels decoded at a time.
constexpr std::int64_t kRowsAtOnce = 512;

struct LabelImage {
  LabelledImage image;
  zarr::OpenedLabelSet set;
  plan::ClassTable classes;
};

StatusOr<LabelImage> OpenLabels(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                      ManifestPaths(context.manifest, "images"));
  if (named.size() != 1) return absl::InvalidArgumentError("export labels: not one store");
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(context.payload, "set", "export labels"));
  PB_ASSIGN_OR_RETURN(const std::string store, context.MayRead(named[0]));
  LabelImage out;
  PB_ASSIGN_OR_RETURN(out.image, OpenLabelledImage(store));
  PB_RETURN_IF_ERROR(CheckFlat(out.image, "export labels"));
  PB_ASSIGN_OR_RETURN(out.set, zarr::OpenLabelSet(store, name));
  PB_ASSIGN_OR_RETURN(const Json* classes,
                      JsonMember(out.set.attributes, "classes", "export labels"));
  PB_ASSIGN_OR_RETURN(out.classes, plan::ClassTableFromJson(*classes, "export labels"));
  return out;
}

StatusOr<std::vector<TracedPolygon>> Trace(TaskContext& context, const LabelImage& labels) {
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(labels.set.path));
  const Extent size = labels.image.levels[0];
  const ImageLayout& layout = source->layout();
  if (layout.channels != 1 || layout.dtype != DType::kUint8 || layout.levels[0].size != size) {
    return absl::DataLossError(StrCat("export labels: ", labels.set.path, ": not of its image"));
  }
  OutlineTracer tracer(size.x, zarr::kIgnoreLabel);
  const auto scratch = source->MakeScratch();
  EncodedPatch fetched;
  std::vector<std::byte> rows;
  for (std::int64_t y = 0; y < size.y; y += kRowsAtOnce) {
    const std::int64_t height = std::min(kRowsAtOnce, size.y - y);
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_RETURN_IF_ERROR(source->Fetch(0, Box2D(y, 0, height, size.x), fetched));
    rows.resize(static_cast<std::size_t>(height * size.x));
    const TensorView view =
        ContiguousView<3>(rows.data(), DType::kUint8, {height, size.x, std::int64_t{1}});
    PB_RETURN_IF_ERROR(source->Decode(fetched, view, zarr::kIgnoreLabel, *scratch));
    for (std::int64_t i = 0; i < height; ++i) {
      PB_RETURN_IF_ERROR(
          tracer.AddRow(reinterpret_cast<const std::uint8_t*>(rows.data()) + i * size.x));
    }
    context.AddProgress();
  }
  return tracer.Finish();
}

void PutRing(const Ring& ring, const LabelledImage& image, std::string& out) {
  const double y = 1 / image.ScaleY(), x = 1 / image.ScaleX();
  out += "[";
  for (std::size_t i = 0; i <= ring.size(); ++i) {  // closed: the first vertex again
    const Vertex& v = ring[i % ring.size()];
    out += StrCat(i == 0 ? "" : ",", "[", v.x * x, ",", v.y * y, "]");
  }
  out += "]";
}

std::string GeoJsonOf(const LabelImage& labels, const std::vector<TracedPolygon>& polygons) {
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
      PutRing(polygon.rings[r], labels.image, out);
    }
    out += "]}}";
  }
  return out + "\n]}\n";
}

StatusOr<TaskOutput> Export(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string target,
                      JsonString(context.manifest, "out", "export labels"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(target));
  PB_ASSIGN_OR_RETURN(const LabelImage labels, OpenLabels(context));
  PB_ASSIGN_OR_RETURN(const std::vector<TracedPolygon> polygons, Trace(context, labels));
  const std::string text = GeoJsonOf(labels, polygons);
  context.AddProgress();
  PB_RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(text)));
  TaskOutput output;
  output.result = DumpJson(
      {{"outlines", polygons.size()}, {"bytes", text.size()}, {"digest", labels.set.digest.Hex()}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunLabelsExport(TaskContext& context) { return Export(context); }

}  // namespace patchbay::workers
