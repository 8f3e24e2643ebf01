#include "workers/jobs/inspect/look_at_image.h"

#include <filesystem>

#include "runtime/zarr/verify.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxVerifyThreads = 256;

StatusOr<std::string> OnlyImage(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                      ManifestPaths(context.manifest, "images"));
  if (named.size() != 1) {
    return absl::InvalidArgumentError(StrCat("manifest: ", named.size(), " images, expected one"));
  }
  return context.MayRead(named[0]);
}

Json LevelJson(const ImageLayout& layout, const LevelLayout& level) {
  return {{"shape", {layout.channels, level.size.y, level.size.x}},
          {"chunk", {layout.channels, level.chunk.y, level.chunk.x}},
          {"downsample", level.downsample}};
}

StatusOr<Json> InspectSlide(TaskContext& context, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(path));
  const ImageLayout& layout = image->layout();
  PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, path));
  Json levels = Json::array();
  for (const LevelLayout& level : layout.levels) levels.push_back(LevelJson(layout, level));
  Json mpp = nullptr;
  if (layout.spacing.MeanMpp()) {
    mpp = {layout.spacing.y->Micrometres(), layout.spacing.x->Micrometres()};
  }
  std::error_code error;
  const std::uint64_t size_bytes =
      std::filesystem::is_directory(path) ? 0 : std::filesystem::file_size(path, error);
  return Json{{"digest", digest.Hex()},
              {"pixel_digest", nullptr},
              {"source", {{"kind", layout.kind}, {"bytes", size_bytes}}},
              {"stored_bytes", size_bytes},
              {"levels", levels},
              {"mpp", mpp}};
}

}  // namespace

StatusOr<TaskOutput> RunInspect(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string path, OnlyImage(context));
  TaskOutput output;
  if (IsStore(path)) {
    PB_ASSIGN_OR_RETURN(const Json inspected, zarr::InspectStore(path));
    output.result = DumpJson(inspected);
  } else {
    PB_ASSIGN_OR_RETURN(const Json inspected, InspectSlide(context, path));
    output.result = DumpJson(inspected);
  }
  return output;
}

StatusOr<TaskOutput> RunVerify(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string path, OnlyImage(context));
  zarr::VerifyOptions options;
  if (context.payload.contains("threads")) {
    PB_ASSIGN_OR_RETURN(const std::int64_t threads, JsonInt(context.payload, "threads", "verify"));
    if (threads < 1 || threads > kMaxVerifyThreads) {
      return absl::InvalidArgumentError(
          StrCat("verify: threads: ", threads, " is not in 1..", kMaxVerifyThreads));
    }
    options.threads = static_cast<int>(threads);
  }
  const auto progress = [&context](std::int64_t, std::int64_t) { context.AddProgress(); };
  PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report, zarr::VerifyStore(path, options, progress));
  TaskOutput output;
  output.result = DumpJson(zarr::ToJson(report));
  output.progress_bytes = report.stored_bytes;
  return output;
}

}  // namespace patchbay::workers
