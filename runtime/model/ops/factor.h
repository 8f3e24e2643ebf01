// brightness and contrast: each draws one factor. brightness multiplies every value of a patch by
// it; contrast moves the values away from the patch's mean or towards it, within its least and
// largest value.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct FactorOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static config::Key BrightnessKeys();
  static config::Key ContrastKeys();
  /// From a value that passed the keys of either.
  static FactorOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
