#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/file.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"
#include "workers/plots/preview_sheet.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/find_volumes.h"
#include "workers/sources/volumes/segmentation_writer.h"

namespace patchbay::workers {
namespace {

constexpr char kOtherFormats[] = "export it as nifti or nrrd";
constexpr double kSamePlaceMm = 0.01;

Status RefuseExport(const std::string& path, std::string_view cause, std::string_view advice = "") {
  return WithAdvice(ErrorAbout(absl::StatusCode::kInvalidArgument, kExportLabels, path, cause),
                    advice);
}

Status CheckStore(const LabelledImage& image) {
  if (image.source_kind != "dicom") {
    return RefuseExport(image.store,
                        "a SEG is of a DICOM series, and the store was made from another file",
                        kOtherFormats);
  }
  const auto is_resampled = [](const Json& step) {
    return step.is_object() && step.value("step", Json()) == "resample slices";
  };
  const Json& log = image.transform_log;
  if (!std::any_of(log.begin(), log.end(), is_resampled)) return absl::OkStatus();
  return RefuseExport(
      image.store,
      "its slices were resampled (--geometry resample), and a SEG has those of the series",
      kOtherFormats);
}

/// The repairs that made the store of its series.
SeriesRepair RepairOf(const LabelledImage& image) {
  SeriesRepair repair{RepairsIn(image.transform_log)};
  for (const Json& step : image.transform_log) {
    if (step.is_object()) repair.part = std::max(repair.part, step.value("part", repair.part));
  }
  return repair;
}

/// The series whose files are those that the store was made from.
StatusOr<DicomSeries> FindSeries(TaskContext& context, const LabelledImage& image) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, kExportLabels));
  if (manifest.sources.size() != 1) return InvalidArgument(kExportLabels, ": expected one source");
  const std::string& named = manifest.sources[0];
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(named));
  const auto may_read = [&context](const std::string& file) { return context.MayRead(file); };
  PB_ASSIGN_OR_RETURN(const FoundVolumes found,
                      FindVolumes(context.allowed, path, may_read, ProgressOf(context)));
  const SeriesRepair repair = RepairOf(image);
  std::uint64_t seen = 0;
  for (const FoundVolume& volume : found.volumes) {
    if (volume.format != VolumeFormat::kDicom) continue;
    ++seen;
    PB_ASSIGN_OR_RETURN(const Digest digest, DigestOfFiles(context, volume.files));
    if (DigestOfPart(digest, repair.part).Hex() != image.source_sha256) continue;
    return OpenSeries(context.allowed, volume.files, ProgressOf(context), repair);
  }
  return RefuseExport(named, StrCat("none of ", Counted(seen, "DICOM series"),
                                    " there has the content that the store was made from"));
}

/// The set has to lie on the slices of the series, in their order.
Status CheckGrid(const LabelledImage& image, const DicomSeries& series, const Judgement& judgement,
                 const VoxelGrid& grid) {
  const Status judged = CheckGeometry(judgement, GeometryPolicy::kAccept);
  if (!judged.ok()) return RefuseExport(image.store, MessageOf(judged));
  const DicomFile& file = series.FileOf(judgement.order.front());
  const Extent slices{static_cast<std::int64_t>(judgement.order.size()), file.rows, file.columns};
  const Affine of_series = AffineOf(series, judgement);
  bool is_same = slices == grid.size;
  for (const Extent& at : {Extent{0, 0, 0}, {slices.z, 0, 0}, {0, slices.y, 0}, {0, 0, slices.x}}) {
    const auto corner = [&at](const Affine& affine) {
      return affine.At(static_cast<double>(at.x), static_cast<double>(at.y),
                       static_cast<double>(at.z));
    };
    is_same = is_same && Norm(corner(of_series) - corner(grid.affine)) <= kSamePlaceMm;
  }
  if (is_same) return absl::OkStatus();
  return RefuseExport(image.store, "its voxels do not lie on the slices of the series");
}

/// A segment for each class that has voxels, but for that of voxels which no segment covers.
std::vector<WrittenSegment> SegmentsOf(const plan::ClassTable& table,
                                       const std::vector<std::uint8_t>& values) {
  std::array<bool, 256> is_there{};
  for (const std::uint8_t value : values) is_there[value] = true;
  is_there[UncoveredClass(table)] = false;
  std::vector<WrittenSegment> segments;
  const auto add = [&](const std::string& name, std::uint8_t value) {
    const Color color = ClassColor(value);
    if (std::exchange(is_there[value], false)) {
      segments.push_back({name, value, {color.red, color.green, color.blue}});
    }
  };
  for (const plan::LabelClass& one : table.classes) {
    add(one.name, static_cast<std::uint8_t>(one.value));
  }
  add("ignored", static_cast<std::uint8_t>(plan::kIgnoreClass));
  return segments;
}

/// When the revision was made.
StatusOr<std::time_t> TimeOf(const Folders& allowed, const std::string& revision) {
  const std::string path = revision + "/zarr.json";
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_RDONLY));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  return st.st_mtime;
}

}  // namespace

StatusOr<Json> ExportSegmentation(TaskContext& context, const OpenedLabels& labels,
                                  const LabelsExportOptions& options, const std::string& path) {
  PB_RETURN_IF_ERROR(CheckStore(labels.image));
  PB_ASSIGN_OR_RETURN(const SourceLabels voxels, ReadOnSourceGrid(context, labels));
  PB_ASSIGN_OR_RETURN(const DicomSeries series, FindSeries(context, labels.image));
  const Judgement judgement = Judge(series);
  PB_RETURN_IF_ERROR(CheckGrid(labels.image, series, judgement, voxels.grid));
  WrittenSegmentation out;
  out.title = options.set;
  out.segments = SegmentsOf(labels.classes, voxels.values);
  if (out.segments.empty()) {
    return RefuseExport(labels.image.store, "no voxel of a class, and a SEG needs a segment");
  }
  out.values = voxels.values;
  out.content = StrCat(labels.set.digest.Hex(), "\n", labels.image.source_sha256);
  PB_ASSIGN_OR_RETURN(out.made, TimeOf(context.allowed, labels.set.path));
  PB_RETURN_IF_ERROR(StepOf(context));
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                      WriteDicomSegmentation(context.allowed, path, series, judgement.order, out));
  return Json{{"content", Counted(out.segments.size(), "segment")},
              {"segments", out.segments.size()},
              {"bytes", bytes}};
}

}  // namespace patchbay::workers
