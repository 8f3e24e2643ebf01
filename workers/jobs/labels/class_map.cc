#include "workers/jobs/labels/class_map.h"

#include <cmath>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/model/results/map_results.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr char kReadClassMap[] = "read class map";
/// The last pixel of a level, and that of a map, may be a part of one.
constexpr double kMostOff = 2;
constexpr double kFinest = 16;  ///< pixels of a map in one of its image

Status RefuseMap(const std::string& path, std::string_view cause, std::string_view advice = "") {
  return WithAdvice(ErrorAbout(absl::StatusCode::kInvalidArgument, kReadClassMap, path, cause),
                    advice);
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The store has to have the pixels that the function saw.
Status CheckContent(const results::MapImage& seen, const LabelledImage& image) {
  if (!seen.pixel_digest) {
    return RefuseMap(image.store, "the map was made from another file than a store",
                     "run `patchbay map` on stores of `patchbay ingest`");
  }
  if (*seen.pixel_digest == image.pixel_digest) return absl::OkStatus();
  return RefuseMap(image.store, "its pixels are not those that the map was made from",
                   "run `patchbay map` again");
}

std::array<std::int64_t, 3> SidesOf(const Extent& size) { return {size.z, size.y, size.x}; }

StatusOr<MapGrid> GridOf(const Folders& allowed, const std::string& path,
                         const LabelledImage& image) {
  const auto source = OpenImage(allowed, path);
  if (!source.ok()) {
    return About(WithCode(source.status(), absl::StatusCode::kInvalidArgument), kReadClassMap,
                 path);
  }
  const ImageLayout& layout = (*source)->layout();
  if (layout.dtype != DType::kUint8 || layout.channels != 1) {
    return RefuseMap(path, StrCat(layout.channels, " x ", NameOf(layout.dtype),
                                  " a pixel: expected one byte, its class"));
  }
  PB_ASSIGN_OR_RETURN(const zarr::Multiscales scales, zarr::ReadMultiscales(allowed, path));
  MapGrid grid;
  grid.size = layout.levels[0].size;
  const zarr::NgffLevel& finest = scales.levels[0];
  bool is_volume = false;
  for (std::size_t i = 0; i < scales.axes.size(); ++i) {
    const std::size_t axis = std::string_view("zyx").find(scales.axes[i].name);
    // From centre to centre: half of a pixel of the map, less half of one of the image.
    const double ratio = 1 - 2 * finest.translation[i] / finest.scale[i];
    if (axis < grid.per_pixel.size()) grid.per_pixel[axis] = ratio;
    is_volume = is_volume || axis == 0;
  }
  if (is_volume != image.is_volume) {
    return RefuseMap(path, is_volume ? "a volume's, and its image is a slide"
                                     : "a slide's, and its image is a volume");
  }
  for (std::size_t axis = 0; axis < grid.per_pixel.size(); ++axis) {
    const double ratio = grid.per_pixel[axis];
    const auto own = static_cast<double>(SidesOf(grid.size)[axis]);
    const auto of_image = static_cast<double>(SidesOf(image.levels[0])[axis]);
    const bool is_fit =
        ratio > 0 && ratio <= kFinest && std::abs(own - ratio * of_image) <= kMostOff;
    if (!is_fit) {
      return RefuseMap(path, StrCat(grid.size.ToString(), " pixels, ", ratio, " along axis ", axis,
                                    " in one of the image's, which has ",
                                    image.levels[0].ToString(), ": they are of another image"));
    }
  }
  return grid;
}

}  // namespace

bool IsClassMap(std::string_view path) { return path.ends_with(results::kClassMapEnding); }

Status CheckNoLinks(TaskContext& context, const std::string& folder) {
  const auto look = [&](const FolderEntry& entry) -> StatusOr<bool> {
    PB_RETURN_IF_ERROR(StepOf(context));
    if (entry.is_folder()) return true;
    if (!entry.is_file()) return RefuseMap(entry.path, "no file: `patchbay map` makes no links");
    return false;
  };
  return WalkTree(context.allowed, folder, Links::kKept, look);
}

StatusOr<OpenedLabels> OpenClassMap(TaskContext& context, const std::string& path,
                                    LabelledImage image) {
  if (!IsClassMap(path)) return RefuseMap(path, "no class map of `patchbay map`");
  const std::string folder = ParentOf(path);
  PB_ASSIGN_OR_RETURN(const results::MapResults found,
                      results::ReadMapResults(context.allowed, ParentOf(folder)));
  PB_ASSIGN_OR_RETURN(const results::MapImage seen, results::ReadMapImage(context.allowed, folder));
  PB_RETURN_IF_ERROR(CheckContent(seen, image));
  std::string name = path.substr(folder.size() + 1);
  name.resize(name.size() - std::string_view(results::kClassMapEnding).size());
  PB_ASSIGN_OR_RETURN(name, results::OutputWithClasses(found, name));
  const results::MapOutput& output = found.outputs.at(name);
  PB_RETURN_IF_ERROR(CheckNoLinks(context, path));
  OpenedLabels out;
  PB_ASSIGN_OR_RETURN(out.classes,
                      plan::ClassTableFromJson(results::ClassTableOf(output), kReadClassMap));
  PB_ASSIGN_OR_RETURN(out.map, GridOf(context.allowed, path, image));
  out.map->first_class = output.HasNone() ? 1 : 0;
  out.map->probabilities = StrCat(folder, "/", name, results::kMapEnding);
  out.set.path = path;
  out.set.attributes["results"] = {{"name", found.name}, {"output", name}};
  PB_ASSIGN_OR_RETURN(out.set.digest, ImageDigest(context, path));
  out.image = std::move(image);
  return out;
}

}  // namespace patchbay::workers
