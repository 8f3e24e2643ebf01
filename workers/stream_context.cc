#include "workers/stream_context.h"

#include <utility>

#include "runtime/base/json.h"
#include "workers/jobs/chain_options.h"
#include "workers/jobs/find_images.h"

namespace patchbay::workers {
namespace {

StatusOr<std::vector<std::string>> PathsOf(const std::string& manifest, std::size_t count) {
  PB_ASSIGN_OR_RETURN(const Json parsed, ParseJson(manifest, "stream manifest"));
  PB_ASSIGN_OR_RETURN(std::vector<std::string> paths, ManifestPaths(parsed, "images"));
  if (paths.size() != count) {
    return absl::InvalidArgumentError("stream manifest: its images are not those of the plan");
  }
  return paths;
}

}  // namespace

StatusOr<std::shared_ptr<StreamContext>> StreamContext::Build(
    const protocol::StreamDescribed& described, ImageCache& images) {
  PB_ASSIGN_OR_RETURN(plan::Plan plan, plan::Plan::Parse(described.plan, ops::OpKeys()));
  if (plan.digest() != described.plan_digest) {
    return absl::InvalidArgumentError(StrCat("open stream: ", described.stream,
                                             ": its plan does not have the digest it is named by"));
  }
  PB_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                      PathsOf(described.manifest, plan.images().size()));
  PB_ASSIGN_OR_RETURN(ops::Chain chain, ops::Chain::Compile(ChainOptionsOf(plan)));
  std::shared_ptr<StreamContext> context(
      new StreamContext(std::move(plan), std::move(chain), images));
  context->stream_ = described.stream;
  context->rights_.read = described.read_prefixes;
  context->checked_paths_.resize(paths.size());
  context->paths_ = std::move(paths);
  context->trainers_ = described.trainers;
  return context;
}

StatusOr<const protocol::TrainerEndpoint*> StreamContext::TrainerOf(std::uint32_t rank) const {
  for (const protocol::TrainerEndpoint& trainer : trainers_) {
    if (trainer.rank == rank) return &trainer;
  }
  return absl::NotFoundError(
      StrCat("find trainer: stream ", stream_, " rank ", rank, ": not attached"));
}

StatusOr<std::shared_ptr<const ImageSource>> StreamContext::Image(std::uint32_t index) {
  PB_ASSIGN_OR_RETURN(const std::string path, CheckedPath(index));
  PB_ASSIGN_OR_RETURN(std::shared_ptr<const ImageSource> image, images_.Get(path));
  PB_RETURN_IF_ERROR(CheckAsPlanned(index, image->layout()));
  return image;
}

StatusOr<std::string> StreamContext::CheckedPath(std::uint32_t index) {
  if (index >= paths_.size()) {
    return absl::InternalError(StrCat("open image: ", index, ": the plan has ", paths_.size()));
  }
  {
    const std::lock_guard lock(checked_mu_);
    if (!checked_paths_[index].empty()) return checked_paths_[index];
  }
  PB_ASSIGN_OR_RETURN(std::string path, PathAllowed(rights_, Access::kRead, paths_[index]));
  const std::lock_guard lock(checked_mu_);
  checked_paths_[index] = path;
  return path;
}

Status StreamContext::CheckAsPlanned(std::uint32_t index, const ImageLayout& layout) const {
  const plan::PlannedImage& planned = plan_.images()[index];
  const auto level = static_cast<std::size_t>(plan_.config().level);
  const bool same = layout.kind == planned.kind && layout.dtype == planned.dtype &&
                    layout.channels == planned.channels && level < layout.levels.size() &&
                    layout.levels[level].height == planned.height &&
                    layout.levels[level].width == planned.width;
  if (same) return absl::OkStatus();
  return absl::DataLossError(
      StrCat("open image: ", index, " of the plan: it is not the image that was planned"));
}

}  // namespace patchbay::workers
