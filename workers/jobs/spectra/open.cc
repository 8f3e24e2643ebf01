// One image: can it be measured, where do its frames lie, and which tasks measure them.

#include <fcntl.h>

#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/spectra/engine.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/image.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/staging.h"
#include "workers/jobs/spectra/tissue.h"
#include "workers/jobs/task/slide_tasks.h"

namespace patchbay::workers {
namespace {

/// What the end of a slide takes (a durable file), in bytes of pixels; without it a
/// cohort of small slides would be all but done halfway.
constexpr std::uint64_t kMergeWeight = 512u << 10;

/// True when an earlier run finished the slide as it is now. What is left of other runs goes.
StatusOr<bool> AdoptFinishedSlide(const SpectraTask& task, const std::string& stamp) {
  RemoveFile(task.folders.allowed, task.folders.FailureFile(task.slide)).IgnoreError();
  const auto finished = LoadSlideSpectra(task.folders, task.slide, task.manifest.settings.spectral);
  if (finished.ok() && finished->stamp == stamp) {
    PB_RETURN_IF_ERROR(
        WriteFileDurably(task.folders.allowed, task.folders.AdoptedFile(task.slide), {}, 0600));
    return true;
  }
  // One that is not there may appear meanwhile: another run of the command may be at work.
  if (finished.ok())
    RemoveFile(task.folders.allowed, task.folders.SlideFile(task.slide)).IgnoreError();
  RemoveFile(task.folders.allowed, task.folders.AdoptedFile(task.slide)).IgnoreError();
  return false;
}

/// Where the tissue is, for the strips; "" when all frames count.
StatusOr<std::string> SaveMask(TaskContext& context, const SpectraTask& task,
                               const SpectraImage& image) {
  if (!task.manifest.settings.tissue_only) return std::string();
  PB_ASSIGN_OR_RETURN(const ops::TissueMask mask, TissueMaskOf(context, *image.source));
  return SaveSpectraArray(task.folders, EncodeTissueMask(mask));
}

std::vector<protocol::TaskSpec> TasksFor(const SpectraTask& task, const SpectraImage& image,
                                         const std::string& mask) {
  const Json names = {
      {"job_key", task.folders.job_key}, {"slide", task.slide}, {"stamp", image.stamp}};
  std::vector<protocol::TaskSpec> tasks;
  protocol::TaskSpec slide;
  const bool is_last = task.slide + 1 == static_cast<std::int64_t>(task.manifest.sources.size());
  for (const ops::FrameRange& frames : CutStrips(image.grid, task.manifest.settings.strip,
                                                 is_last ? StripTail::kFine : StripTail::kEven)) {
    protocol::TaskSpec strip;
    Json payload = names;
    payload["rows"] = {frames.row_begin, frames.row_end};
    payload["columns"] = {frames.column_begin, frames.column_end};
    payload["mask"] = mask;
    strip.op = "spectra.strip";
    strip.payload = DumpJson(payload);
    strip.resources = SpectraResources(task.manifest.settings);
    strip.group = static_cast<std::uint32_t>(task.slide) + 1;
    strip.label = StrCat("slide ", task.slide, " rows ", frames.row_begin, "-", frames.row_end - 1);
    strip.weight = RawBytesOf(image.grid, frames, image.source->layout().channels);
    slide.depends_on.push_back(protocol::kSpawnedBase + static_cast<std::uint32_t>(tasks.size()));
    tasks.push_back(std::move(strip));
  }
  // The file was just read: it is in memory. A worker that has no strip left may name it.
  protocol::TaskSpec name;
  name.op = "spectra.name";
  name.payload = DumpJson(names);
  name.resources = SpectraResources(task.manifest.settings);  // in turn with the strips
  name.group = static_cast<std::uint32_t>(task.slide) + 1;
  name.label = StrCat("slide ", task.slide, " digest");
  slide.depends_on.push_back(protocol::kSpawnedBase + static_cast<std::uint32_t>(tasks.size()));
  tasks.push_back(std::move(name));
  slide.op = "spectra.slide";
  slide.payload = DumpJson(names);
  slide.group = static_cast<std::uint32_t>(task.slide) + 1;
  slide.label = StrCat("slide ", task.slide, " merge");
  slide.weight = kMergeWeight;
  slide.resources.cpu_millis = kEndingCpuMillis;
  tasks.push_back(std::move(slide));
  return tasks;
}

StatusOr<TaskOutput> Open(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraFolders folders, SpectraFoldersOf(context));
  OwnJobFolder(folders);
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  PB_RETURN_IF_ERROR(OpenFile(context.allowed, task.path, O_RDONLY | O_NONBLOCK).status());
  PB_ASSIGN_OR_RETURN(const std::string stamp, SpectraStamp(task));
  PB_ASSIGN_OR_RETURN(const bool adopted, AdoptFinishedSlide(task, stamp));
  TaskOutput output;
  if (!adopted) {
    PB_ASSIGN_OR_RETURN(const SpectraImage image, OpenSpectraImage(task, stamp));
    // Below that, no wait would make room for a strip.
    PB_RETURN_IF_ERROR(CheckStripMemory(task.manifest.settings, OwnMemoryLimit()));
    context.AddProgress();
    PB_ASSIGN_OR_RETURN(const std::string mask, SaveMask(context, task, image));
    output.spawned = TasksFor(task, image, mask);
  }
  output.result =
      DumpJson({{"slide", task.slide}, {"strips", adopted ? 0 : output.spawned.size() - 2}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunSpectraOpen(TaskContext& context) {
  return EndSpectraTask(context, Open(context));
}

}  // namespace patchbay::workers
