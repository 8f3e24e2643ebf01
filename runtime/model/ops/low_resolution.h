// low_resolution: the patch as a scanner of lower resolution would give it, at its own size.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

inline constexpr double kMinLowResolutionZoom = 0.05;

struct LowResolutionOptions {
  double p = kDefaultProbability;
  DrawRange zoom = {0.5, 1.0};  ///< of every side; smaller means coarser

  static config::Key Keys();
  /// From a value that passed Keys().
  static LowResolutionOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
