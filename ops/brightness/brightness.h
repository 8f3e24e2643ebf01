// brightness: multiplies every value of a patch by one factor.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct BrightnessOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static constexpr plan::OpNumber kNumber{18};
  static std::vector<plan::Option<BrightnessOptions>> Table();
  /// From a value that passed the keys.
  static BrightnessOptions FromJson(const Json& options) {
    return plan::ReadOptions<BrightnessOptions>(options);
  }
};

/// brightness as a row of the table of ops.
plan::OpRow DescribeBrightness();

}  // namespace patchbay::ops
