#include <memory>
#include <set>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/scan/scan_volumes.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/single_tasks.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

using results::ScanRow;

/// A store holds all levels, a third more than the finest; typical pixels take half their room.
constexpr double kBytesOfSlideStore = 4.0 / 3 / 2;

std::uint64_t EstimatedBytes(const ImageLayout& layout) {
  const auto pixels = static_cast<double>(layout.levels.front().size.Pixels());
  const auto pixel_bytes =
      static_cast<double>(layout.channels) * static_cast<double>(SizeOf(layout.dtype));
  return static_cast<std::uint64_t>(pixels * pixel_bytes * kBytesOfSlideStore);
}

StatusOr<ScanRow> RowOf(TaskContext& context, const std::string& listed, bool hash) {
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, path));
  const ImageLayout& layout = image->layout();
  if (layout.levels.empty()) return InvalidArgument("an image without levels");
  const bool is_store = IsFolder(context.allowed, path);
  const Extent& size = layout.levels.front().size;
  ScanRow row{.path = listed,
              .verdict = "ok",
              .kind = layout.kind,
              .mpp = layout.spacing.MeanMpp(),
              .height = size.y,
              .width = size.x,
              .source_bytes = BytesOfSlide(context, path),
              .estimated_bytes = is_store ? 0 : EstimatedBytes(layout)};
  if (is_store) {
    row.content_hash = zarr::SourceDigestOf(context.allowed, path);
  } else if (hash) {
    PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, path));
    row.content_hash = digest.Hex();
  }
  return row;
}

/// `is_folder`: the paths are from a named folder, which may also hold masks.
Status AddSlides(TaskContext& context, const std::vector<std::string>& paths, bool hash,
                 bool is_folder, std::vector<ScanRow>& rows) {
  for (const std::string& path : paths) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    StatusOr<ScanRow> row = RowOf(context, path, hash);
    std::string mask;
    if (is_folder && row.ok()) {
      PB_ASSIGN_OR_RETURN(mask, MaskReason(context, path));
    }
    if (!mask.empty()) MarkMask(mask, *row);
    rows.push_back(row.ok() ? *std::move(row)
                            : ScanRow{path, std::string(MessageOf(row.status()))});
    context.AddProgress();
  }
  return absl::OkStatus();
}

struct Scanned : results::ScanRows {
  std::set<std::string> seen;  ///< paths of the rows, each once
};

/// Volumes, then slides and stores, of one path.
Status AddPath(TaskContext& context, const std::string& path, const ScanVolumesOptions& options,
               Scanned& scanned) {
  std::set<std::string>& seen = scanned.seen;
  const auto volumes = ScanVolumes(context, path, options);
  if (absl::IsCancelled(volumes.status())) return volumes.status();
  const std::size_t before = seen.size();
  if (volumes.ok()) {
    for (const ScanRow& row : volumes->rows) {
      if (seen.insert(row.path).second) scanned.images.push_back(row);
    }
  }
  const bool has_volumes = seen.size() > before;
  const bool is_folder = IsFolder(context.allowed, path);
  if (has_volumes && !is_folder) return absl::OkStatus();
  FilesByKind skipped_files;
  const auto found =
      FindImages(context, {path}, {.keep_unreadable = true, .skipped_files = &skipped_files});
  if (volumes.ok()) LeaveOut(volumes->files, skipped_files);
  for (const auto& [kind, files] : skipped_files) scanned.skipped_files[kind] += files;
  if (!found.ok() && has_volumes && absl::IsNotFound(found.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(found.status());
  std::vector<std::string> slides;
  for (const std::string& slide : *found) {
    if (seen.insert(slide).second) slides.push_back(slide);
  }
  return AddSlides(context, slides, options.hash, is_folder, scanned.images);
}

}  // namespace

StatusOr<TaskOutput> RunScan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(auto options, ReadPayload<ScanVolumesOptions>(context.payload, "scan"));
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<JobManifest>(context.manifest, "scan manifest"));
  options.pseudonym_key = manifest.pseudonym_key;
  Scanned scanned;
  for (const std::string& path : manifest.images) {
    PB_RETURN_IF_ERROR(AddPath(context, path, options, scanned));
  }
  TaskOutput output;
  output.result = DumpJson(JsonOf<results::ScanRows>(scanned));
  return output;
}

}  // namespace patchbay::workers
