#include "runtime/model/ops/low_resolution.h"

namespace patchbay::plan {

config::Key LowResolutionOptions::Keys() {
  const LowResolutionOptions defaults;
  return {
      .name = "low_resolution",
      .type = config::KeyType::kMap,
      .help = "downsamples the patch by nearest voxel, then upsamples it trilinearly; volumes only",
      .members = {ProbabilityKey(), RangeKey({.name = "zoom",
                                              .min = kMinLowResolutionZoom,
                                              .max = 1,
                                              .help = "factor of each side"},
                                             defaults.zoom)}};
}

LowResolutionOptions LowResolutionOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "zoom")};
}

}  // namespace patchbay::plan
