// One image: can it be measured, where do its frames lie, and which tasks measure them.

#include <algorithm>
#include <cstddef>

#include <fcntl.h>

#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/spectra/engine.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_image.h"
#include "workers/jobs/spectra/spectra_staging.h"

namespace patchbay::workers {
namespace {

/// The weight in progress of a slide's last task (it writes a durable file), in bytes of pixels.
/// Without it, a cohort of small slides would seem almost done halfway.
constexpr std::uint64_t kMergeWeight = 512u << 10;

/// True when an earlier run finished the slide in its present state. Removes leftovers of other
/// runs.
StatusOr<bool> AdoptFinishedSlide(const SpectraTask& task) {
  const Folders& allowed = task.folders.allowed;
  RemoveFile(allowed, task.FailureFile()).IgnoreError();
  const auto finished = LoadSlideSpectra(task);
  if (finished.ok() && finished->stamp == task.asked.stamp) {
    PB_RETURN_IF_ERROR(WriteFileDurably(allowed, task.AdoptedFile(), {}, 0600));
    return true;
  }
  // One that is not there may appear meanwhile: another run of the command may be at work.
  if (finished.ok()) RemoveFile(allowed, task.SlideFile()).IgnoreError();
  RemoveFile(allowed, task.AdoptedFile()).IgnoreError();
  return false;
}

/// Where the tissue is, for the strips; "" when all frames count.
StatusOr<std::string> SaveMask(TaskContext& context, const SpectraTask& task,
                               const SpectraImage& image) {
  if (!task.settings.tissue_only) return std::string();
  PB_ASSIGN_OR_RETURN(const ops::TissueMask mask, TissueMaskOf(context, *image.source));
  return SaveSpectraArray(task.folders, EncodeTissueMask(mask));
}

/// Where the name stands among `strips` tasks: before the last quarter. The file is in memory by
/// then for the most part, and the strips that follow, of the job's last slide ever finer, leave no
/// worker alone with it.
std::ptrdiff_t PlaceOfName(std::size_t strips) {
  return static_cast<std::ptrdiff_t>(strips - (strips + 3) / 4);
}

/// Strips, among them the name, and the merge, which depends on all of them and the name last.
std::vector<protocol::TaskSpec> TasksFor(const SpectraTask& task, const SpectraImage& image,
                                         const std::string& mask) {
  const Json stamp = JsonOf(task.asked);
  std::vector<protocol::TaskSpec> tasks;
  const bool is_last = task.slide + 1 == static_cast<std::int64_t>(task.manifest.sources.size());
  for (const ops::FrameRange& frames :
       CutStrips(image.grid, task.settings.strip, is_last ? StripTail::kFine : StripTail::kEven)) {
    protocol::TaskSpec& strip = tasks.emplace_back(
        task.Part("spectra.strip", StrCat("rows ", frames.row_begin, "-", frames.row_end - 1),
                  JsonOf(SpectraPayload{task.asked.stamp, frames, mask})));
    strip.weight = RawBytesOf(image.grid, frames, image.source->layout().channels);
  }
  const std::ptrdiff_t name = PlaceOfName(tasks.size());
  tasks.insert(tasks.begin() + name, task.Part("spectra.name", "digest", stamp));
  protocol::TaskSpec merge = task.Part("spectra.slide", "merge", stamp);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].resources = SpectraResources(task.settings);  // the name's in turn with the strips'
    merge.depends_on.push_back(protocol::kSpawnedBase + static_cast<std::uint32_t>(i));
  }
  std::rotate(merge.depends_on.begin() + name, merge.depends_on.begin() + name + 1,
              merge.depends_on.end());  // its result is the last input
  merge.weight = kMergeWeight;
  merge.resources.cpu_millis = kEndingCpuMillis;
  tasks.push_back(std::move(merge));
  return tasks;
}

}  // namespace

StatusOr<TaskOutput> RunSpectraOpen(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SpectraTask task, OpenSpectraTask(context));
  PB_RETURN_IF_ERROR(OpenFile(context.allowed, task.path, O_RDONLY | O_NONBLOCK).status());
  PB_ASSIGN_OR_RETURN(task.asked.stamp, SpectraStamp(task));
  PB_ASSIGN_OR_RETURN(const bool adopted, AdoptFinishedSlide(task));
  TaskOutput output;
  if (!adopted) {
    PB_ASSIGN_OR_RETURN(const SpectraImage image, OpenSpectraImage(task));
    // Below that, no wait would make room for a strip.
    PB_RETURN_IF_ERROR(CheckStripMemory(task.settings, OwnMemoryLimit()));
    context.AddProgress();
    PB_ASSIGN_OR_RETURN(const std::string mask, SaveMask(context, task, image));
    output.spawned = TasksFor(task, image, mask);
  }
  output.result =
      DumpJson({{"slide", task.slide}, {"strips", adopted ? 0 : output.spawned.size() - 2}});
  return output;
}

}  // namespace patchbay::workers
