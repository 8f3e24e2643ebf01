// gamma: a power of the values between the patch's least and largest one.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct GammaOptions {
  double p = kDefaultProbability;
  DrawRange gamma = {0.7, 1.5};  ///< the exponent, drawn around 1, see DrawnAroundOne
  bool retain_stats = false;     ///< restore the mean and deviation from before
  bool invert = false;           ///< applied to the negated values, then negated back

  static constexpr plan::OpNumber kNumber{21};
  static std::vector<plan::Option<GammaOptions>> Table();
};

}  // namespace patchbay::ops
