#include "workers/stream/chain_options.h"

#include <algorithm>

namespace patchbay::workers {

ops::ChainOptions ChainOptionsOf(const plan::Plan& plan) {
  const plan::RunConfig& config = plan.config();
  ops::ChainOptions options;
  options.preprocess = config.preprocess;
  options.augment = config.augment;
  options.patch = config.patch;
  options.channels = plan.channels();
  options.kind = plan::PatchKindOf(config);
  options.source_dtype = plan.images().front().dtype;
  options.dtype = config.dtype;
  options.layout = config.layout;
  options.images_have_depth = std::any_of(plan.images().begin(), plan.images().end(),
                                          [](const auto& image) { return image.size.z > 1; });
  return options;
}

ops::ImageColours ColoursOf(const plan::PlannedImage& image, const ops::IccLookup* icc) {
  ops::ImageColours colours;
  if (image.macenko) colours.macenko = &*image.macenko;
  if (image.reinhard) colours.reinhard = &*image.reinhard;
  colours.icc = icc;
  colours.stain_reference = image.stain_reference;
  return colours;
}

}  // namespace patchbay::workers
