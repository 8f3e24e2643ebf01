#include "ops/low_resolution/low_resolution.h"

namespace patchbay::ops {

std::vector<plan::Option<LowResolutionOptions>> LowResolutionOptions::Table() {
  using O = LowResolutionOptions;
  return {ProbabilityOption<O>(), plan::OptionOf(&O::zoom, {.name = "zoom",
                                                            .min = kMinLowResolutionZoom,
                                                            .max = 1,
                                                            .help = "factor of each side"})};
}

plan::OpRow DescribeLowResolution() {
  return {
      .number = LowResolutionOptions::kNumber,
      .keys = plan::KeysOf<LowResolutionOptions>(
          "low_resolution",
          "downsamples the patch by nearest voxel, then upsamples it trilinearly; volumes only"),
      .needs = {.neighbours = true, .random = true, .once = true},
      .axes = plan::OpAxes::kVolume,
      .example = {{"p", 1}, {"zoom", {0.4, 0.8}}}};
}

}  // namespace patchbay::ops
