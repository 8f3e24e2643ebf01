#include "runtime/plan/ops/low_resolution.h"

namespace patchbay::plan {

config::Key LowResolutionOptions::Keys() {
  const LowResolutionOptions defaults;
  return {.name = "low_resolution",
          .type = config::KeyType::kMap,
          .help = "samples the patch down by the nearest voxel, then up again trilinearly; volumes",
          .members = {ProbabilityKey(), RangeKey({.name = "zoom",
                                                  .min = kMinLowResolutionZoom,
                                                  .max = 1,
                                                  .help = "of each side, in between"},
                                                 defaults.zoom)}};
}

LowResolutionOptions LowResolutionOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "zoom")};
}

}  // namespace patchbay::plan
