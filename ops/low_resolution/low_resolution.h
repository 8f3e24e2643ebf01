// low_resolution: simulates a scanner of lower resolution; the patch keeps its size.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

inline constexpr double kMinLowResolutionZoom = 0.05;

struct LowResolutionOptions {
  double p = kDefaultProbability;
  DrawRange zoom = {0.5, 1.0};  ///< scale of every side; smaller means coarser

  static constexpr plan::OpNumber kNumber{20};
  static std::vector<plan::Option<LowResolutionOptions>> Table();
};

}  // namespace patchbay::ops
