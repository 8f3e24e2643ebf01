#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/results/volume_report.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/single_tasks.h"
#include "workers/jobs/task/stated_modality.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"
#include "workers/sources/slide_scanner.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxVerifyThreads = 256;

StatusOr<std::string> OnlyImage(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, "manifest"));
  const std::size_t count = manifest.images.size();
  if (count != 1) return InvalidArgument("manifest: ", count, " images, expected one");
  return context.MayRead(manifest.images[0]);
}

zarr::LevelReport LevelOf(const ImageLayout& layout, const LevelLayout& level) {
  return {{layout.channels, level.size.y, level.size.x},
          {layout.channels, level.chunk.y, level.chunk.x},
          level.downsample};
}

/// Adds manufacturer and model; the time of the scan only where the payload asks for it.
Status DescribeScanner(TaskContext& context, const std::string& path, zarr::ImageReport& report) {
  PB_ASSIGN_OR_RETURN(const SlideScanner scanner, ScannerOf(context.allowed, path));
  report.scanner = {scanner.manufacturer, scanner.model, ""};
  if (context.payload.value("phi", Json()) == Json(true)) {
    report.scanner.scanned_at = scanner.scanned_at;
  }
  return absl::OkStatus();
}

StatusOr<zarr::ImageReport> InspectSlide(TaskContext& context, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, path));
  const ImageLayout& layout = image->layout();
  zarr::ImageReport report;
  PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, path));
  report.digest = digest.Hex();
  report.stored_bytes = SizeOf(context.allowed, path).value_or(0);
  report.source = {layout.kind, report.stored_bytes};
  report.dtype = NameOf(layout.dtype);
  report.channel_names = layout.channel_names;
  report.objective_power = layout.objective_power;
  PB_RETURN_IF_ERROR(DescribeScanner(context, path, report));
  if (const auto lookup = image->ToSrgb(); !lookup.ok() || *lookup != nullptr) {
    report.icc = lookup.ok() ? "usable" : "unusable";
  }
  for (const LevelLayout& level : layout.levels) report.levels.push_back(LevelOf(layout, level));
  if (layout.spacing.MeanMpp()) {
    report.mpp = {layout.spacing.y->Micrometres(), layout.spacing.x->Micrometres()};
  }
  return report;
}

/// Adds value range, shape, axes and spacing of a volume, as ingest would store it.
void DescribeVoxels(const Volume& volume, results::VolumeReport& report) {
  const ValueRange range = RangeOf(volume);
  report.value_range = {range.min, range.max, range.mean};
  report.not_finite = FindNonFinite(volume).ToString(volume.size);
  report.shape = volume.size;
  report.dtype = volume.dtype;
  const Spacing spacing = volume.SpacingMm();
  for (const auto& [axis, along] :
       {std::pair{"z", spacing.z}, std::pair{"y", spacing.y}, std::pair{"x", spacing.x}}) {
    report.spacing.push_back({axis, along->value, std::string(NameOf(along->unit))});
  }
  report.orientation = volume.facts.value("source_orientation", "");
  report.affine_lps = ToJson(LpsOf(volume.affine));
  report.acquisition = volume.facts;
}

StatusOr<results::VolumeReport> InspectVolume(TaskContext& context, const FoundVolume& found) {
  const VolumeProgress progress = ProgressOf(context);
  results::VolumeReport report;
  report.name = found.name;
  report.format = NameOf(found.format);
  report.files = found.files.size();
  ReadVolumeOptions options;
  options.geometry = GeometryPolicy::kAccept;
  bool is_refused = false;
  if (found.format == VolumeFormat::kDicom) {
    PB_ASSIGN_OR_RETURN(const DicomSeries series,
                        OpenSeries(context.allowed, found.files, progress));
    const Judgement judgement = Judge(series);
    report.verdict = NameOf(judgement.verdict);
    report.reason = ToString(series, judgement);
    is_refused = !CheckGeometry(judgement, options.geometry).ok();
  }
  const auto volume = ReadVolume(context.allowed, found.format, found.files, options, progress);
  if (absl::IsCancelled(volume.status())) return volume.status();
  if (volume.ok()) {
    DescribeVoxels(*volume, report);
    const auto stated = StatedModality(context, found.format, found.files.front());
    report.modality = stated ? stated : RecordedModality({{"acquisition", volume->facts}});
  } else {
    report.error = MessageOf(volume.status());
    report.damaged = !is_refused;
  }
  return report;
}

/// Files in a folder that belong to none of its volumes; none of a file.
StatusOr<FilesByKind> SkippedFiles(TaskContext& context, const std::string& path,
                                   const FoundVolumes& found) {
  FilesByKind skipped_files;
  FolderVisitor visitor;
  visitor.store = [](const std::string&) { return absl::OkStatus(); };
  visitor.file = [&](const std::string& file, const StatusOr<struct stat>&) {
    ++skipped_files[KindOfFile(file)];
    context.AddProgress();
    return absl::OkStatus();
  };
  visitor.locked = [](const std::string&, const Status&) { return absl::OkStatus(); };
  visitor.done = [&] { return context.CheckCancelled(); };
  if (!IsFolder(context.allowed, path)) return skipped_files;
  PB_RETURN_IF_ERROR(WalkFolder(context.allowed, path, "inspect", visitor));
  for (const FoundVolume& volume : found.volumes) LeaveOut(volume.files, skipped_files);
  return skipped_files;
}

/// Nothing where there is no volume; InvalidArgument where names promise one.
StatusOr<std::optional<results::VolumesReport>> InspectVolumes(TaskContext& context,
                                                               const std::string& path) {
  const auto may_read = [&context](const std::string& file) { return context.MayRead(file); };
  PB_ASSIGN_OR_RETURN(const FoundVolumes found,
                      FindVolumes(context.allowed, path, may_read, ProgressOf(context)));
  if (found.volumes.empty() && !found.unreadable.empty()) {
    const std::size_t others = found.unreadable.size() - 1;
    return ErrorAbout(
        absl::StatusCode::kInvalidArgument, "inspect", found.unreadable[0],
        StrCat("not the DICOM or NIfTI file that its name says",
               others == 0 ? "" : StrCat("; ", Counted(others, "other file"), " likewise")));
  }
  if (found.volumes.empty()) return std::nullopt;
  results::VolumesReport report;
  report.other_dicom_files = found.other_dicom;
  for (const FoundVolume& volume : found.volumes) {
    PB_ASSIGN_OR_RETURN(report.volumes.emplace_back(), InspectVolume(context, volume));
  }
  PB_ASSIGN_OR_RETURN(report.skipped_files, SkippedFiles(context, path, found));
  return report;
}

StatusOr<Json> Inspect(TaskContext& context, const std::string& path) {
  if (!zarr::IsStore(context.allowed, path)) {
    PB_ASSIGN_OR_RETURN(const auto volumes, InspectVolumes(context, path));
    if (volumes) return JsonOf(*volumes);
  }
  PB_ASSIGN_OR_RETURN(const zarr::ImageReport report,
                      zarr::IsStore(context.allowed, path)
                          ? zarr::InspectStore(context.allowed, path)
                          : InspectSlide(context, path));
  return JsonOf(report);
}

}  // namespace

StatusOr<TaskOutput> RunInspect(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string path, OnlyImage(context));
  PB_ASSIGN_OR_RETURN(const Json report, Inspect(context, path));
  TaskOutput output;
  output.result = DumpJson(report);
  return output;
}

StatusOr<TaskOutput> RunVerify(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string path, OnlyImage(context));
  zarr::VerifyOptions options;
  if (context.payload.contains("threads")) {
    PB_ASSIGN_OR_RETURN(const std::int64_t threads, JsonInt(context.payload, "threads", "verify"));
    if (threads < 1 || threads > kMaxVerifyThreads) {
      return InvalidArgument("verify: threads: ", threads, " is not in 1..", kMaxVerifyThreads);
    }
    options.threads = static_cast<int>(threads);
  }
  const auto progress = [&context](std::int64_t, std::int64_t) { return StepOf(context); };
  PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report,
                      zarr::VerifyStore(context.allowed, path, options, progress));
  TaskOutput output;
  output.result = DumpJson(zarr::ToJson(report));
  output.progress_bytes = report.stored_bytes;
  return output;
}

}  // namespace patchbay::workers
