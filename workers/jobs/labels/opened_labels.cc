#include "workers/jobs/labels/opened_labels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/outcome.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/labels/class_map.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// In pixels: a centre that lies no further before an edge lies behind it, as centres on an edge
/// do.
constexpr double kOnEdge = 1e-6;

Status OtherImage(const OpenedLabels& labels) {
  return ErrorAbout(absl::StatusCode::kDataLoss, kExportLabels, labels.set.path,
                    "it does not match its image");
}

}  // namespace

StatusOr<OpenedLabels> OpenLabels(TaskContext& context, const std::string& set) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, kExportLabels));
  const bool is_map = !manifest.label_rows.empty();
  if ((is_map ? manifest.label_rows.size() : manifest.images.size()) != 1) {
    return InvalidArgument(kExportLabels, ": expected one store");
  }
  PB_ASSIGN_OR_RETURN(const std::string store,
                      context.MayRead(is_map ? manifest.label_rows[0].store : manifest.images[0]));
  OpenedLabels out;
  PB_ASSIGN_OR_RETURN(out.image, OpenLabelledImage(context.allowed, store));
  if (is_map) {
    PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(manifest.label_rows[0].file));
    return OpenClassMap(context, path, std::move(out.image));
  }
  PB_ASSIGN_OR_RETURN(out.set, zarr::OpenLabelSet(context.allowed, store, set));
  PB_ASSIGN_OR_RETURN(const Json* classes,
                      JsonMember(out.set.attributes, "classes", kExportLabels));
  PB_ASSIGN_OR_RETURN(out.classes, plan::ClassTableFromJson(*classes, kExportLabels));
  return out;
}

VoxelGrid GridOf(const OpenedLabels& labels) {
  VoxelGrid grid{labels.image.levels[0], labels.image.affine};
  if (!labels.map) return grid;
  Affine& a = grid.affine;
  const auto& per_pixel = labels.map->per_pixel;
  const auto stretch = [&a](Vec3& axis, double by) {
    const Vec3 own = axis * by;
    a.origin = a.origin + (own - axis) * 0.5;
    axis = own;
  };
  stretch(a.z, 1 / per_pixel[0]);
  stretch(a.y, 1 / per_pixel[1]);
  stretch(a.x, 1 / per_pixel[2]);
  grid.size = labels.map->size;
  return grid;
}

StatusOr<std::vector<std::uint8_t>> ReadVoxels(TaskContext& context, const OpenedLabels& labels) {
  const Extent size = GridOf(labels).size;
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(context.allowed, labels.set.path));
  const ImageLayout& layout = source->layout();
  if (layout.channels != 1 || layout.dtype != DType::kUint8 || layout.levels[0].size != size) {
    return OtherImage(labels);
  }
  const auto voxels = static_cast<std::uint64_t>(size.Pixels());
  PB_RETURN_IF_ERROR(CheckMemoryFits("read labels", voxels, AvailableMemory()));
  std::vector<std::uint8_t> values(voxels);
  const auto scratch = source->MakeScratch();
  EncodedPatch fetched;
  fetched.after_piece = ProgressOf(context);
  for (std::int64_t z = 0; z < size.z; z += kSlicesAtOnce) {
    const std::int64_t depth = std::min(kSlicesAtOnce, size.z - z);
    PB_RETURN_IF_ERROR(source->Fetch(0, BoxAt({z, 0, 0}, {depth, size.y, size.x}), fetched));
    auto* to = reinterpret_cast<std::byte*>(values.data() + z * size.y * size.x);
    const TensorView view =
        ContiguousView<4>(to, DType::kUint8, {depth, size.y, size.x, std::int64_t{1}});
    PB_RETURN_IF_ERROR(source->Decode(fetched, view, plan::kIgnoreClass, *scratch));
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return values;
}

std::int64_t NearestPixel::operator()(std::int64_t at) const {
  const double there = (static_cast<double>(at) + 0.5) * per_pixel + kOnEdge;
  return std::min(side - 1, static_cast<std::int64_t>(there));
}

Box LevelFit::Of(const Box& box) const {
  const std::int64_t top = y(box.y), left = x(box.x);
  return Box2D(top, left, y(box.y + box.height - 1) - top + 1, x(box.x + box.width - 1) - left + 1);
}

LevelFit FitOf(const OpenedLabels& labels, const ImageLayout& layout, int level) {
  const std::vector<Extent>& levels = labels.image.levels;
  const Extent& size = levels[static_cast<std::size_t>(level)];
  if (!labels.map) return {level, {1, size.y}, {1, size.x}};
  const auto step = [](std::int64_t fine, std::int64_t coarse) {
    const std::int64_t factor = zarr::Footprint(fine, coarse).factor();
    return factor > 0 ? static_cast<double>(factor)
                      : static_cast<double>(fine) / static_cast<double>(coarse);
  };
  const double y = labels.map->per_pixel[1] * step(levels[0].y, size.y);
  const double x = labels.map->per_pixel[2] * step(levels[0].x, size.x);
  LevelFit fit{0, {y, layout.levels[0].size.y}, {x, layout.levels[0].size.x}};
  for (std::size_t i = 1; i < layout.levels.size(); ++i) {
    const LevelLayout& own = layout.levels[i];
    const double least = std::min(y / own.steps[1], x / own.steps[2]);
    if (least < 1 - kOnEdge) break;
    fit = {static_cast<int>(i), {y / own.steps[1], own.size.y}, {x / own.steps[2], own.size.x}};
  }
  return fit;
}

StatusOr<LabelRowReader> LabelRowReader::Open(const Folders& allowed, const OpenedLabels& labels,
                                              int level, AfterPiece after_piece) {
  LabelRowReader reader;
  PB_ASSIGN_OR_RETURN(reader.source_, OpenImage(allowed, labels.set.path));
  const ImageLayout& layout = reader.source_->layout();
  const auto index = static_cast<std::size_t>(level);
  const Extent size = labels.image.levels[index];
  const bool is_of_image =
      labels.map || (index < layout.levels.size() && layout.levels[index].size == size);
  if (layout.channels != 1 || layout.dtype != DType::kUint8 || !is_of_image) {
    return OtherImage(labels);
  }
  reader.scratch_ = reader.source_->MakeScratch();
  reader.fit_ = FitOf(labels, layout, level);
  reader.width_ = size.x;
  for (std::int64_t x = 0; labels.map && x < size.x; ++x) {
    reader.columns_.push_back(reader.fit_.x(x));
  }
  reader.fetched_.after_piece = std::move(after_piece);
  return reader;
}

StatusOr<const std::uint8_t*> LabelRowReader::Read(std::int64_t y, std::int64_t height) {
  Box box = fit_.Of(Box2D(y, 0, height, width_));
  box.x = 0, box.width = fit_.x.side;
  const auto pixels = static_cast<std::size_t>(box.Pixels());
  if (pixels > read_.size()) {
    PB_RETURN_IF_ERROR(CheckMemoryFits("read labels", pixels, AvailableMemory()));
    read_.resize(pixels);
  }
  PB_RETURN_IF_ERROR(source_->Fetch(fit_.level, box, fetched_));
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(read_.data()), DType::kUint8,
                        {box.height, box.width, std::int64_t{1}});
  PB_RETURN_IF_ERROR(source_->Decode(fetched_, view, zarr::kIgnoreLabel, *scratch_));
  if (columns_.empty()) return read_.data();
  rows_.resize(static_cast<std::size_t>(height * width_));
  for (std::int64_t i = 0; i < height; ++i) {
    const std::uint8_t* row = read_.data() + (fit_.y(y + i) - box.y) * box.width;
    std::uint8_t* out = rows_.data() + i * width_;
    for (std::int64_t x = 0; x < width_; ++x) out[x] = row[columns_[static_cast<std::size_t>(x)]];
  }
  return rows_.data();
}

}  // namespace patchbay::workers
