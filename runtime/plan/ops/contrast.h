// contrast: moves the values away from the patch's mean or towards it, within its least and largest
// value.
#pragma once

#include "runtime/base/json.h"
#include "runtime/config/key_table.h"
#include "runtime/plan/ops/draw_range.h"

namespace patchbay::plan {

struct ContrastOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static config::Key Keys();
  /// From a value that passed Keys().
  static ContrastOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
