// brightness: multiplies every value of a patch by one factor.
#pragma once

#include "runtime/base/json.h"
#include "runtime/config/key_table.h"
#include "runtime/plan/ops/draw_range.h"

namespace patchbay::plan {

struct BrightnessOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static config::Key Keys();
  /// From a value that passed Keys().
  static BrightnessOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
