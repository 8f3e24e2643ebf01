// contrast: moves the values of a patch away from its mean or towards it, within its least and
// largest value.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct ContrastOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static constexpr plan::OpNumber kNumber{19};
  static std::vector<plan::Option<ContrastOptions>> Table();
  /// From a value that passed the keys.
  static ContrastOptions FromJson(const Json& options) {
    return plan::ReadOptions<ContrastOptions>(options);
  }
};

/// contrast as a row of the table of ops.
plan::OpRow DescribeContrast();

}  // namespace patchbay::ops
