// ct_normalize: clips to two percentiles of the training set's foreground, then subtracts its mean
// and divides by its deviation; nnU-Net's scheme for CT. One set of numbers for every image.
#pragma once

#include <optional>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/config/key_table.h"

namespace patchbay::plan {

struct CtNormalizeOptions {
  double lower = 0, upper = 0;  ///< HU, or units of `window`; lower < upper
  double mean = 0, std = 1;     ///< of the clipped values; std > 0

  static config::Key Keys();
  /// From a value that passed Keys(). FailedPrecondition without all four numbers.
  static StatusOr<CtNormalizeOptions> FromJson(const Json& options);
};

}  // namespace patchbay::plan
