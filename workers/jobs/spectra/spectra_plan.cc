// The root task: which images, may the results lie there, and one task for each.
#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_publish.h"
#include "workers/jobs/spectra/spectra_staging.h"
#include "workers/jobs/task/find_images.h"

namespace patchbay::workers {
namespace {

/// The most bytes that a slide leaves in the folder: staging, its part of spectra.json, a row.
constexpr std::uint64_t kSlideBytes = 96u << 10;
/// Sums of q and q^2 in two places, and the mean that is published.
constexpr std::uint64_t kCoefficientBytes = 2 * 16 + 4;

/// Bytes that the job may write.
std::uint64_t NeededBytes(const SpectraTask& job) {
  const plan::SpectralOptions& o = job.settings;
  std::uint64_t slide = kSlideBytes;
  if (o.coefficients) {
    slide += kCoefficientBytes * static_cast<std::uint64_t>(o.frame) *
             static_cast<std::uint64_t>(o.frame / 2 + 1) *
             static_cast<std::uint64_t>(plan::SpectralChannels(o));
  }
  return slide * job.manifest.sources.size();
}

Status CheckSpace(const StagedFolders& folders, std::uint64_t needed) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t free, FreeBytes(folders.allowed, folders.out));
  if (free >= needed) return absl::OkStatus();
  return ErrorAbout(
      absl::StatusCode::kFailedPrecondition, "spectra", folders.out,
      StrCat("about ", HumanBytes(needed), " are needed and ", HumanBytes(free), " are free"));
}

StatusOr<PlannedJob> FindSpectra(TaskContext& context, const StagedFolders& folders) {
  SpectraTask job(context.allowed);
  job.folders = folders;
  PB_ASSIGN_OR_RETURN(job.settings, ParseSpectraSettings(context.payload));
  job.manifest.settings = JsonOf(job.settings);
  PB_ASSIGN_OR_RETURN(const auto asked,
                      FromJson<JobManifest>(context.manifest, "spectra manifest"));
  job.manifest.pseudonym_key = asked.pseudonym_key;
  if (job.manifest.pseudonym_key.empty()) {
    return InvalidArgument("spectra manifest: pseudonym_key is empty");
  }
  PlannedJob plan;
  PB_ASSIGN_OR_RETURN(job.manifest.sources, FindImages(context, asked.sources,
                                                       {.most = kMaxSlides,
                                                        .masks = false,
                                                        .keep_unreadable = true,
                                                        .skipped_files = &plan.skipped_files}));
  job.folders.job_key = SpectraJobKey(job);
  PB_RETURN_IF_ERROR(CheckOutIsFree(job));
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, job.folders.out));
  PB_RETURN_IF_ERROR(CheckSpace(job.folders, NeededBytes(job)));
  PB_RETURN_IF_ERROR(
      SaveStagedManifest(job.folders, job.manifest, {"adopted", "failures", "arrays"}));
  plan.job_key = job.folders.job_key;
  plan.sources = job.manifest.sources.size();
  return plan;
}

constexpr Stage kStages[] = {
    {"open", RunSpectraOpen, LeaveSpectraFailure},
    {"strip", RunSpectraStrip, LeaveSpectraFailure},
    {"name", RunSpectraName, LeaveSpectraFailure},
    {"slide", RunSpectraSlide, LeaveSpectraFailure},
};

}  // namespace

const StagedJob kSpectraJob = {"spectra", FindSpectra, kStages, SummariseSpectra};

}  // namespace patchbay::workers
