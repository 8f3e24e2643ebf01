// gamma: a power of the values between the patch's least and largest one.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct GammaOptions {
  double p = kDefaultProbability;
  DrawRange gamma = {0.7, 1.5};  ///< the exponent, drawn around 1, see DrawnAroundOne
  bool retain_stats = false;     ///< mean and deviation become those from before
  bool invert = false;           ///< applied to the negated values, then negated back

  static config::Key Keys();
  /// From a value that passed Keys().
  static GammaOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
