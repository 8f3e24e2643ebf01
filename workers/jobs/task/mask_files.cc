#include "workers/jobs/task/mask_files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tiff_writer.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTile = 512, kMostTiles = 64;

/// labelsTr and labelsTs are the folders of nnU-Net and of the Medical Segmentation Decathlon.
bool IsAmongLabels(const Folders& allowed, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = folder.filename().string();
  return (name == "labelsTr" || name == "labelsTs") &&
         IsRegularFile(allowed, (folder.parent_path() / "dataset.json").string());
}

/// Adds the pixels of a tile; false once they are an image's.
StatusOr<bool> AddTile(const ImageSource& image, const Box& tile, DecodeScratch& scratch,
                       ClassValues& values) {
  EncodedPatch encoded;
  std::vector<std::byte> pixels(static_cast<std::size_t>(tile.Pixels()));
  PB_RETURN_IF_ERROR(image.Fetch(0, tile, encoded));
  const TensorView view =
      ContiguousView<3>(pixels.data(), DType::kUint8, {tile.height, tile.width, std::int64_t{1}});
  PB_RETURN_IF_ERROR(image.Decode(encoded, view, 0, scratch));
  return std::all_of(pixels.begin(), pixels.end(), [&](std::byte pixel) {
    return values.Add(static_cast<double>(std::to_integer<int>(pixel)));
  });
}

}  // namespace

StatusOr<std::string> MaskReason(TaskContext& context, const FoundVolume& volume) {
  if (volume.format == VolumeFormat::kDicom) return std::string();
  const std::string& path = volume.files.front();
  if (IsAmongLabels(context.allowed, path))
    return std::string("among the labels of a dataset.json");
  return ClassesIn(context.allowed, volume.format, path, ProgressOf(context));
}

StatusOr<std::string> MaskReason(TaskContext& context, const std::string& slide) {
  const auto image = OpenImage(context.allowed, slide);
  if (!image.ok()) return std::string();
  const ImageLayout& layout = (*image)->layout();
  if (layout.channels != 1 || layout.dtype != DType::kUint8 || layout.levels.empty()) {
    return std::string();
  }
  if (IsExportedMask(context.allowed, slide))
    return std::string("a mask that `labels export` wrote");
  const Extent size = layout.levels.front().size;
  const Extent grid = Flat((size.y + kTile - 1) / kTile, (size.x + kTile - 1) / kTile);
  const std::int64_t tiles = std::min(grid.Pixels(), kMostTiles);
  const auto scratch = (*image)->MakeScratch();
  ClassValues values;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const Point at = CellAt(grid, i * grid.Pixels() / tiles);
    const Box tile = Intersect(Box2D(at.y * kTile, at.x * kTile, kTile, kTile), WholeOf(size));
    const auto goes_on = AddTile(**image, tile, *scratch, values);
    PB_RETURN_IF_ERROR(StepOf(context));
    if (!goes_on.ok() || !*goes_on) return std::string();
  }
  return values.ToString();
}

}  // namespace patchbay::workers
