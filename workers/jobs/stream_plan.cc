#include "workers/jobs/stream_plan.h"

#include <utility>
#include <vector>

#include "ops/chain.h"
#include "runtime/plan/plan.h"
#include "workers/jobs/chain_options.h"
#include "workers/jobs/find_images.h"
#include "workers/jobs/image_digest.h"
#include "workers/jobs/planned_images.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxImageRuns = 4'096;  ///< what a scheduler takes

/// What a payload says besides the run config itself.
struct PlanRequest {
  plan::RunConfig config;
  std::uint32_t world_size = 1;
};

StatusOr<plan::Numerics> ClusterNumerics(const Json& payload) {
  PB_ASSIGN_OR_RETURN(const std::string name,
                      JsonString(payload, "cluster_numerics", "stream.plan"));
  if (name == "cpu") return plan::Numerics::kCpu;
  if (name == "cuda") return plan::Numerics::kCuda;
  return absl::InvalidArgumentError(
      StrCat("stream.plan: cluster_numerics: '", name, "' is neither cpu nor cuda"));
}

StatusOr<PlanRequest> ParsePayload(Json payload) {
  PlanRequest request;
  if (!payload.is_object()) return absl::InvalidArgumentError("stream.plan: payload: no object");
  plan::Numerics numerics = plan::Numerics::kCpu;
  if (payload.contains("world_size")) {
    PB_ASSIGN_OR_RETURN(const std::int64_t ranks, JsonInt(payload, "world_size", "stream.plan"));
    if (ranks < 1 || ranks > plan::kMaxGlobalBatch) {
      return absl::InvalidArgumentError(
          StrCat("stream.plan: world_size: ", ranks, " is not in 1..", plan::kMaxGlobalBatch));
    }
    request.world_size = static_cast<std::uint32_t>(ranks);
    payload.erase("world_size");
  }
  if (payload.contains("cluster_numerics")) {
    PB_ASSIGN_OR_RETURN(numerics, ClusterNumerics(payload));
    payload.erase("cluster_numerics");
  }
  PB_ASSIGN_OR_RETURN(request.config, plan::RunConfigFromJson(payload, ops::OpKeys()));
  if (!request.config.numerics) {
    request.config.numerics = numerics;
  }
  return request;
}

Status CannotUse(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("plan stream: ", path, ": ", why));
}

StatusOr<plan::PlannedImage> PlanImage(TaskContext& context, const plan::RunConfig& config,
                                       const std::string& path) {
  StatusOr<std::unique_ptr<ImageSource>> image = OpenImage(path);
  if (!image.ok()) return Annotate(image.status(), StrCat("plan stream: ", path));
  const ImageLayout& layout = (*image)->layout();
  if (config.level >= layout.levels.size()) {
    return CannotUse(path, StrCat("key 'patch.level': ", config.level, " of an image of ",
                                  layout.levels.size(), " levels"));
  }
  const LevelLayout& level = layout.levels[config.level];
  if (level.depth != 1) return CannotUse(path, "a volume; streams take flat images so far");
  plan::PlannedImage planned;
  planned.kind = layout.kind;
  planned.height = level.height;
  planned.width = level.width;
  planned.channels = layout.channels;
  planned.dtype = layout.dtype;
  PB_ASSIGN_OR_RETURN(planned.digest, ImageDigest(context, path));
  return planned;
}

/// Plans every image, and takes its stamp before it is opened and hashed.
StatusOr<std::vector<plan::PlannedImage>> PlanImages(TaskContext& context,
                                                     const plan::RunConfig& config,
                                                     const std::vector<std::string>& paths,
                                                     std::vector<std::string>& stamps) {
  std::vector<plan::PlannedImage> images;
  for (const std::string& path : paths) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(stamps.emplace_back(), StampOf(path));
    PB_ASSIGN_OR_RETURN(plan::PlannedImage image, PlanImage(context, config, path));
    if (!images.empty() &&
        (image.channels != images.front().channels || image.dtype != images.front().dtype)) {
      return CannotUse(path, StrCat(image.channels, " channels of ", NameOf(image.dtype), ", but ",
                                    paths.front(), " has ", images.front().channels, " of ",
                                    NameOf(images.front().dtype)));
    }
    images.push_back(std::move(image));
    context.AddProgress();
  }
  return images;
}

/// [[patches an image, images], ...]: which image the patches of a sequential epoch are of, so that
/// its shards can go where that image is open. Of very many images the list has pairs, fours, ...
Json ImageRuns(const plan::Plan& plan) {
  std::vector<std::uint64_t> counts;
  const std::vector<std::uint64_t>& ends = plan.cumulative_patches();
  for (std::size_t i = 1; i < ends.size(); ++i) {
    if (ends[i] > ends[i - 1]) counts.push_back(ends[i] - ends[i - 1]);
  }
  for (;;) {
    Json runs = Json::array();
    for (const std::uint64_t count : counts) {
      if (!runs.empty() && runs.back()[0] == count) {
        runs.back()[1] = runs.back()[1].get<std::uint64_t>() + 1;
      } else if (runs.size() > kMaxImageRuns) {
        break;
      } else {
        runs.push_back({count, std::uint64_t{1}});
      }
    }
    if (runs.size() <= kMaxImageRuns) return runs;
    for (std::size_t i = 0; i + 1 < counts.size(); i += 2) {
      counts[i / 2] = counts[i] + counts[i + 1];
    }
    if (counts.size() % 2 != 0) counts[counts.size() / 2] = counts.back();
    counts.resize((counts.size() + 1) / 2);
  }
}

Json GeometryJson(const StreamGeometry& geometry, plan::Numerics numerics) {
  return {{"patches_per_epoch", geometry.patches_per_epoch},
          {"global_batch", geometry.global_batch},
          {"tail", plan::NameOf(geometry.tail)},
          {"world_size", geometry.world_size},
          {"shard_patches", geometry.shard_patches},
          {"patch_bytes", geometry.patch_bytes},
          {"numerics", plan::NameOf(numerics)}};
}

/// The paths of the dataset's images, which have names from here on.
StatusOr<std::vector<std::string>> FindNamedImages(TaskContext& context) {
  context.names.AddManifest(context.manifest);
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                      ManifestPaths(context.manifest, "images"));
  PB_ASSIGN_OR_RETURN(std::vector<std::string> paths, FindImages(context, named));
  for (std::size_t i = 0; i < paths.size(); ++i)
    context.names.AddImage(paths[i], StrCat("image ", i));
  return paths;
}

Status TooLarge(std::size_t images, std::size_t bytes) {
  return absl::ResourceExhaustedError(
      StrCat("plan stream: ", images, " images make a plan of ", HumanBytes(bytes),
             ", more than the ", HumanBytes(protocol::kMaxResultBytes),
             " that travel: split the dataset, or shorten the paths below their common folder"));
}

}  // namespace

StatusOr<TaskOutput> RunStreamPlan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const PlanRequest request, ParsePayload(context.payload));
  PlannedImages where;
  PB_ASSIGN_OR_RETURN(where.paths, FindNamedImages(context));
  PB_ASSIGN_OR_RETURN(std::vector<plan::PlannedImage> images,
                      PlanImages(context, request.config, where.paths, where.stamps));
  PB_ASSIGN_OR_RETURN(const plan::Plan made, plan::Plan::Build(request.config, std::move(images)));
  PB_ASSIGN_OR_RETURN(const StreamGeometry geometry, made.Geometry(request.world_size));
  PB_RETURN_IF_ERROR(plan::RingBytes(geometry, request.config.prefetch).status());
  PB_RETURN_IF_ERROR(ops::Chain::Compile(ChainOptionsOf(made)).status());
  Json numbers = GeometryJson(geometry, *made.config().numerics);
  if (made.config().order == plan::Order::kSequential) numbers["image_runs"] = ImageRuns(made);
  TaskOutput output;
  output.result =
      DumpJson({{"plan", made.Text()}, {"manifest", ToManifest(where)}, {"geometry", numbers}});
  if (output.result.size() > protocol::kMaxResultBytes) {
    return TooLarge(where.paths.size(), output.result.size());
  }
  return output;
}

}  // namespace patchbay::workers
