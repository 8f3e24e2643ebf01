// ct_normalize: clips to two percentiles of the training set's foreground, then subtracts its mean
// and divides by its deviation; nnU-Net's scheme for CT. One set of numbers for every image, given
// or left to a lock.
#pragma once

#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct CtNormalizeOptions {
  std::optional<double> lower = {}, upper = {};  ///< HU, or units of `window`; lower < upper
  std::optional<double> mean = {}, std = {};     ///< std > 0

  /// Whether none of the numbers is given, so that a lock must supply them.
  bool IsAwaiting() const { return !lower && !upper && !mean && !std; }
  /// InvalidArgument unless all numbers are given and plausible.
  Status CheckNumbers() const;
  Status Check() const { return IsAwaiting() ? absl::OkStatus() : CheckNumbers(); }

  static constexpr plan::OpNumber kNumber{16};
  static std::vector<plan::Option<CtNormalizeOptions>> Table();
};

}  // namespace patchbay::ops
