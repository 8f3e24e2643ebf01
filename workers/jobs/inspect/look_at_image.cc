#include "workers/jobs/inspect/look_at_image.h"

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/progress.h"
#include "workers/sources/image_source.h"
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

Json LevelJson(const ImageLayout& layout, const LevelLayout& level) {
  return {{"shape", {layout.channels, level.size.y, level.size.x}},
          {"chunk", {layout.channels, level.chunk.y, level.chunk.x}},
          {"downsample", level.downsample}};
}

StatusOr<Json> InspectSlide(TaskContext& context, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, path));
  const ImageLayout& layout = image->layout();
  PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, path));
  Json levels = Json::array();
  for (const LevelLayout& level : layout.levels) levels.push_back(LevelJson(layout, level));
  Json mpp = nullptr;
  if (layout.spacing.MeanMpp()) {
    mpp = {layout.spacing.y->Micrometres(), layout.spacing.x->Micrometres()};
  }
  const std::uint64_t size_bytes = SizeOf(context.allowed, path).value_or(0);
  return Json{{"digest", digest.Hex()},
              {"pixel_digest", nullptr},
              {"source", {{"kind", layout.kind}, {"bytes", size_bytes}}},
              {"stored_bytes", size_bytes},
              {"levels", levels},
              {"mpp", mpp}};
}

Json SpacingJson(const Volume& volume) {
  const Spacing spacing = volume.SpacingMm();
  Json out = Json::array();
  for (const auto& [axis, along] :
       {std::pair{"z", spacing.z}, std::pair{"y", spacing.y}, std::pair{"x", spacing.x}}) {
    out.push_back({{"axis", axis}, {"value", along->value}, {"unit", NameOf(along->unit)}});
  }
  return out;
}

/// Adds value range, shape, axes and spacing of a volume, as ingest would store it.
void DescribeVoxels(const Volume& volume, Json& row) {
  const ValueRange range = RangeOf(volume);
  row["value_range"] = {{"min", range.min}, {"max", range.max}, {"mean", range.mean}};
  const std::string non_finite = FindNonFinite(volume).ToString(volume.size);
  if (!non_finite.empty()) row["not_finite"] = non_finite;
  row["shape"] = {volume.size.z, volume.size.y, volume.size.x};
  row["dtype"] = NameOf(volume.dtype);
  row["spacing"] = SpacingJson(volume);
  row["orientation"] = volume.facts.value("source_orientation", "");
  row["affine_lps"] = ToJson(LpsOf(volume.affine));
  row["acquisition"] = volume.facts;
}

StatusOr<Json> InspectVolume(TaskContext& context, const FoundVolume& found) {
  const VolumeProgress progress = ProgressOf(context);
  Json row = {
      {"name", found.name}, {"format", NameOf(found.format)}, {"files", found.files.size()}};
  ReadVolumeOptions options;
  options.geometry = GeometryPolicy::kAccept;
  bool is_refused = false;
  if (found.format == VolumeFormat::kDicom) {
    PB_ASSIGN_OR_RETURN(const DicomSeries series,
                        OpenSeries(context.allowed, found.files, progress));
    const Judgement judgement = Judge(series);
    row["verdict"] = NameOf(judgement.verdict);
    row["reason"] = ToString(series, judgement);
    is_refused = !CheckGeometry(judgement, options.geometry).ok();
  }
  const auto volume = ReadVolume(context.allowed, found.format, found.files, options, progress);
  if (absl::IsCancelled(volume.status())) return volume.status();
  if (volume.ok()) {
    DescribeVoxels(*volume, row);
  } else {
    row["error"] = MessageOf(volume.status());
    row["damaged"] = !is_refused;
  }
  return row;
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

/// {"volumes": one row each}; null where there is none, InvalidArgument where names promise one.
StatusOr<Json> InspectVolumes(TaskContext& context, const std::string& path) {
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
  if (found.volumes.empty()) return Json(nullptr);
  Json rows = Json::array();
  for (const FoundVolume& volume : found.volumes) {
    PB_ASSIGN_OR_RETURN(Json row, InspectVolume(context, volume));
    rows.push_back(std::move(row));
  }
  PB_ASSIGN_OR_RETURN(const FilesByKind skipped_files, SkippedFiles(context, path, found));
  return Json{{"volumes", std::move(rows)},
              {"other_dicom_files", found.other_dicom},
              {"skipped_files", Json(skipped_files)}};
}

}  // namespace

StatusOr<TaskOutput> RunInspect(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string path, OnlyImage(context));
  TaskOutput output;
  if (zarr::IsStore(context.allowed, path)) {
    PB_ASSIGN_OR_RETURN(const Json inspected, zarr::InspectStore(context.allowed, path));
    output.result = DumpJson(inspected);
    return output;
  }
  PB_ASSIGN_OR_RETURN(Json inspected, InspectVolumes(context, path));
  if (inspected.is_null()) {
    PB_ASSIGN_OR_RETURN(inspected, InspectSlide(context, path));
  }
  output.result = DumpJson(inspected);
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
