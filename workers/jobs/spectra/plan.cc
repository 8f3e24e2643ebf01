// The root task: which images, may the results lie there, and one task for each.
#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/spectra/publish.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/staging.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/slide_tasks.h"

namespace patchbay::workers {
namespace {

/// What a slide leaves in the folder at the most: staging, its part of spectra.json, a row.
constexpr std::uint64_t kSlideBytes = 96u << 10;
/// Sums of q and q^2 in two places, and the mean that is published.
constexpr std::uint64_t kCoefficientBytes = 2 * 16 + 4;

/// Bytes that the job may write.
std::uint64_t NeededBytes(const SpectraManifest& manifest) {
  const plan::SpectralOptions& o = manifest.settings.spectral;
  std::uint64_t slide = kSlideBytes;
  if (o.coefficients) {
    slide += kCoefficientBytes * static_cast<std::uint64_t>(o.frame) *
             static_cast<std::uint64_t>(o.frame / 2 + 1) *
             static_cast<std::uint64_t>(plan::SpectralChannels(o));
  }
  return slide * manifest.sources.size();
}

Status CheckSpace(const SpectraFolders& folders, std::uint64_t needed) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t free, FreeBytes(folders.allowed, folders.out));
  if (free >= needed) return absl::OkStatus();
  return FileError(
      absl::StatusCode::kFailedPrecondition, "spectra", folders.out,
      StrCat("about ", HumanBytes(needed), " are needed and ", HumanBytes(free), " are free"));
}

StatusOr<TaskOutput> Plan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SpectraFolders folders, SpectraFoldersOf(context));
  SpectraManifest manifest;
  PB_ASSIGN_OR_RETURN(manifest.settings, ParseSpectraSettings(context.payload));
  PB_ASSIGN_OR_RETURN(manifest.pseudonym_key,
                      JsonString(context.manifest, "pseudonym_key", "spectra manifest"));
  if (manifest.pseudonym_key.empty()) {
    return absl::InvalidArgumentError("spectra manifest: pseudonym_key is empty");
  }
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                      ManifestPaths(context.manifest, "sources"));
  FilesByKind passed_over;
  PB_ASSIGN_OR_RETURN(
      manifest.sources,
      FindImages(context, named,
                 {.most = kMaxSlides, .keep_unreadable = true, .passed_over = &passed_over}));
  folders.job_key = SpectraJobKey(manifest);
  PB_RETURN_IF_ERROR(CheckOutIsFree(folders, manifest));
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folders.out));
  PB_RETURN_IF_ERROR(CheckSpace(folders, NeededBytes(manifest)));
  PB_RETURN_IF_ERROR(SaveSpectraManifest(folders, manifest));
  return PlannedSlides(folders, manifest.sources.size(), {{"passed_over", Json(passed_over)}});
}

}  // namespace

StatusOr<TaskOutput> RunSpectraPlan(TaskContext& context) {
  return EndSpectraTask(context, Plan(context));
}

}  // namespace patchbay::workers
