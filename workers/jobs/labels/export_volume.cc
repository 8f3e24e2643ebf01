#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/volumes/mask_file.h"

namespace patchbay::workers {
namespace {

Status Damaged(const LabelledImage& image, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kDataLoss, "export labels", image.store, cause);
}

/// Before `ingest --spacing`: `size` voxels over the same place.
Status UndoResample(const Json& step, VoxelGrid& grid) {
  const Json shape = step.value("from_shape", Json());
  const auto is_side = [](const Json& side) {
    return side.is_number_unsigned() && side.get<std::uint64_t>() >= 1 &&
           side.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMaxReadSide);
  };
  if (!shape.is_array() || shape.size() != 3 || !std::all_of(shape.begin(), shape.end(), is_side)) {
    return InvalidArgument("its record of a resampling is wrong");
  }
  const Extent before{shape[0].get<std::int64_t>(), shape[1].get<std::int64_t>(),
                      shape[2].get<std::int64_t>()};
  PB_RETURN_IF_ERROR(CheckVolumeSize(before, "its source"));
  Affine& a = grid.affine;
  const auto undo = [&a](Vec3& axis, std::int64_t now, std::int64_t then) {
    const Vec3 old = axis * (static_cast<double>(now) / static_cast<double>(then));
    a.origin = a.origin + (old - axis) * 0.5;
    axis = old;
  };
  undo(a.z, grid.size.z, before.z);
  undo(a.y, grid.size.y, before.y);
  undo(a.x, grid.size.x, before.x);
  grid.size = before;
  return absl::OkStatus();
}

Status UndoReorder(const Json& step, VoxelGrid& grid) {
  const Json axes = step.value("axes", Json());
  PB_ASSIGN_OR_RETURN(const AxisOrder order,
                      AxisOrderFromText(axes.is_string() ? axes.get<std::string>() : ""));
  const AxisOrder back = Inverse(order);
  grid.affine = Reordered(grid.affine, grid.size, back);
  grid.size = Reordered(grid.size, back);
  return absl::OkStatus();
}

using WriteMask = StatusOr<std::uint64_t> (*)(const Folders& allowed, const std::string& path,
                                              const VolumeMask& mask);

StatusOr<Json> ExportVolume(TaskContext& context, const OpenedLabels& labels, WriteMask write,
                            const std::string& path) {
  PB_ASSIGN_OR_RETURN(const SourceLabels voxels, ReadOnSourceGrid(context, labels));
  const Extent& size = voxels.grid.size;
  PB_ASSIGN_OR_RETURN(
      const std::uint64_t bytes,
      write(context.allowed, path, {size, voxels.grid.affine, voxels.values, true}));
  return Json{{"content", StrCat("classes of ", size.x, " x ", size.y, " x ", size.z, " voxels")},
              {"size", {size.z, size.y, size.x}},
              {"grid", voxels.is_resampled ? "resampled" : "same"},
              {"bytes", bytes}};
}

}  // namespace

StatusOr<VoxelGrid> SourceGridOf(const LabelledImage& image) {
  VoxelGrid grid{image.levels[0], image.affine};
  const Json& log = image.transform_log;
  if (!log.is_array()) return Damaged(image, "transform_log is no list");
  for (auto step = log.rbegin(); step != log.rend(); ++step) {
    if (!step->is_object()) return Damaged(image, "transform_log has a step that is none");
    const Json name = step->value("step", Json());
    Status undone;
    if (name == "resample") undone = UndoResample(*step, grid);
    if (name == "reorder axes") undone = UndoReorder(*step, grid);
    if (!undone.ok()) return Damaged(image, MessageOf(undone));
  }
  return grid;
}

StatusOr<SourceLabels> ReadOnSourceGrid(TaskContext& context, const OpenedLabels& labels) {
  const VoxelGrid stored = GridOf(labels);
  SourceLabels out;
  PB_ASSIGN_OR_RETURN(out.grid, SourceGridOf(labels.image));
  // The classes as stored and on the source's grid; then those, and the file.
  const auto bytes = static_cast<std::uint64_t>(stored.size.Pixels() + out.grid.size.Pixels());
  PB_RETURN_IF_ERROR(CheckMemoryFits("export labels", bytes, AvailableMemory()));
  PB_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> values, ReadVoxels(context, labels));
  GridFit fit;
  PB_ASSIGN_OR_RETURN(out.values, OntoGrid(values, stored, out.grid, UncoveredClass(labels.classes),
                                           ProgressOf(context), fit));
  out.is_resampled = !fit.is_aligned;
  return out;
}

StatusOr<Json> ExportNifti(TaskContext& context, const OpenedLabels& labels,
                           const LabelsExportOptions& /*options*/, const std::string& path) {
  return ExportVolume(context, labels, WriteNiftiMask, path);
}

StatusOr<Json> ExportNrrd(TaskContext& context, const OpenedLabels& labels,
                          const LabelsExportOptions& /*options*/, const std::string& path) {
  return ExportVolume(context, labels, WriteNrrdMask, path);
}

}  // namespace patchbay::workers
