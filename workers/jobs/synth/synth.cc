#include "workers/jobs/synth/synth.h"

#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/single_tasks.h"

namespace patchbay::workers {
namespace {

/// The path that the task is to write.
StatusOr<std::string> TargetOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, "manifest"));
  return context.MayWrite(manifest.out);
}

SynthProgress ProgressIn(TaskContext& context) {
  return [&context](double) {
    context.AddProgress();
    return context.CheckCancelled().ok();
  };
}

TaskOutput Made(const Extent& voxels, const Json& result) {
  TaskOutput output;
  output.progress_bytes = static_cast<std::uint64_t>(voxels.Pixels()) * sizeof(std::int16_t);
  output.result = DumpJson(result);
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunSynthSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(auto options, ReadPayload<SynthSlideOptions>(context.payload, "synth slide"));
  options.threads = context.threads;
  PB_ASSIGN_OR_RETURN(const std::string path, TargetOf(context));
  PB_RETURN_IF_ERROR(SynthSlide(context.allowed, path, options, ProgressIn(context)));
  TaskOutput output;
  output.progress_bytes = SizeOf(context.allowed, path).value_or(0);
  output.result = DumpJson({{"bytes", output.progress_bytes}});
  return output;
}

StatusOr<TaskOutput> RunSynthVolume(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<SynthVolumeOptions>(context.payload, "synth volume"));
  PB_ASSIGN_OR_RETURN(const std::string path, TargetOf(context));
  PB_RETURN_IF_ERROR(SynthVolume(context.allowed, path, options, ProgressIn(context)));
  return Made(options.size, Json::object());
}

StatusOr<TaskOutput> RunSynthCt(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(auto options, ReadPayload<SynthCtOptions>(context.payload, "synth ct"));
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(manifest.out));
  if (!manifest.lesions.empty()) {
    PB_ASSIGN_OR_RETURN(options.lesions, context.MayWrite(manifest.lesions));
  }
  PB_ASSIGN_OR_RETURN(const std::int64_t files,
                      SynthCt(context.allowed, path, options, ProgressIn(context)));
  return Made(options.size, {{"files", files}});
}

}  // namespace patchbay::workers
