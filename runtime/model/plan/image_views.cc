#include "runtime/model/plan/image_views.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/image_error.h"

namespace patchbay::plan {
namespace {

/// A random crop would shift every image of a patch by the same number of its own pixels, so by
/// different distances.
Status CheckContextCrops(const RunConfig& config) {
  if (config.mpp.size() < 2) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, config.Steps());
  for (const OpStep& step : steps) {
    if (!step.op->moves_centre || !step.op->moves_centre(step.options)) continue;
    return InvalidArgument("plan: key '", step.key,
                           "': a random crop would part the centres of the context ",
                           "patches; use position: center, or sampling.positions: random");
  }
  return absl::OkStatus();
}

}  // namespace

Extent SourceOf(const RunConfig& config, const PlannedImage& image) {
  return image.views.empty() ? config.patch : image.views.front().source;
}

Extent StepOf(const RunConfig& config, const PlannedImage& image) {
  const Extent stride = StrideOf(config), source = SourceOf(config, image);
  const auto scaled = [](std::int64_t step, std::int64_t to, std::int64_t of) {
    return std::max<std::int64_t>(1, (step * to + of / 2) / of);
  };
  return {scaled(stride.z, source.z, config.patch.z), scaled(stride.y, source.y, config.patch.y),
          scaled(stride.x, source.x, config.patch.x)};
}

Extent CellsOfGrid(const RunConfig& config, const PlannedImage& image) {
  const Extent step = StepOf(config, image);
  return config.mpp.empty() ? GridOf(image.size, SourceOf(config, image), step)
                            : CellsOf(image.size, step);
}

Status CheckPatchOf(const RunConfig& config, const PlannedImage& image) {
  if (image.size.z != 1 && !config.has_depth) {
    return InvalidArgument("key 'patch.size': [y, x] of a volume of ", image.size.z,
                           " slices; give three values: [z, y, x]");
  }
  if (image.size.z == 1 && config.patch.z != 1) {
    return InvalidArgument("key 'patch.size': ", config.patch.z,
                           " slices of an image that has one; give [y, x]");
  }
  return absl::OkStatus();
}

PlannedView Plan::ViewOf(std::uint32_t image, std::size_t view) const {
  const PlannedImage& planned = images_[image];
  if (!planned.views.empty()) return planned.views[view];
  return {.level = static_cast<int>(config_.level), .size = planned.size, .source = config_.patch};
}

Status CheckViews(const RunConfig& config, const std::vector<PlannedImage>& images) {
  PB_RETURN_IF_ERROR(CheckContextCrops(config));
  const std::size_t wanted = config.spacing ? 1 : config.mpp.size();
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::vector<PlannedView>& views = images[i].views;
    if (views.size() != wanted) return ImageError(i, "its levels are not chosen");
    if (config.spacing &&
        views.front().source != SourceSides(config.patch, images[i].volume->step)) {
      return ImageError(i, "the voxels of a patch do not match its spacing");
    }
    if (!views.empty() && views.front().size != images[i].size) {
      return ImageError(i, "its size differs from that of its level");
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan
