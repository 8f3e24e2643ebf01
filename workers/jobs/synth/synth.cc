#include "workers/jobs/synth/synth.h"

#include <filesystem>

#include "workers/jobs/synth/ct.h"
#include "workers/jobs/synth/slide.h"
#include "workers/jobs/synth/volume.h"

namespace patchbay::workers {

StatusOr<TaskOutput> RunSynthSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SynthSlideOptions options, SynthSlideOptionsFromJson(context.payload));
  PB_ASSIGN_OR_RETURN(const std::string named, JsonString(context.manifest, "out", "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(named));
  PB_RETURN_IF_ERROR(SynthSlide(context.allowed, path, options, [&context](double) {
    context.AddProgress();
    return context.CheckCancelled().ok();
  }));
  std::error_code error;
  TaskOutput output;
  output.progress_bytes = std::filesystem::file_size(path, error);
  output.result = DumpJson({{"bytes", output.progress_bytes}});
  return output;
}

StatusOr<TaskOutput> RunSynthVolume(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SynthVolumeOptions options,
                      SynthVolumeOptionsFromJson(context.payload));
  PB_ASSIGN_OR_RETURN(const std::string named, JsonString(context.manifest, "out", "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(named));
  PB_RETURN_IF_ERROR(SynthVolume(context.allowed, path, options, [&context](double) {
    context.AddProgress();
    return context.CheckCancelled().ok();
  }));
  TaskOutput output;
  output.progress_bytes = static_cast<std::uint64_t>(options.size.Pixels()) * sizeof(std::int16_t);
  output.result = DumpJson(Json::object());
  return output;
}

StatusOr<TaskOutput> RunSynthCt(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SynthCtOptions options, SynthCtOptionsFromJson(context.payload));
  PB_ASSIGN_OR_RETURN(const std::string named, JsonString(context.manifest, "out", "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(named));
  if (context.manifest.contains("lesions")) {
    PB_ASSIGN_OR_RETURN(const std::string mask,
                        JsonString(context.manifest, "lesions", "manifest"));
    PB_ASSIGN_OR_RETURN(options.lesions, context.MayWrite(mask));
  }
  PB_ASSIGN_OR_RETURN(const std::int64_t files,
                      SynthCt(context.allowed, path, options, [&context](double) {
                        context.AddProgress();
                        return context.CheckCancelled().ok();
                      }));
  TaskOutput output;
  output.progress_bytes = static_cast<std::uint64_t>(options.size.Pixels()) * sizeof(std::int16_t);
  output.result = DumpJson({{"files", files}});
  return output;
}

}  // namespace patchbay::workers
