// ct_normalize: clips to two percentiles of the training set's foreground, then subtracts its mean
// and divides by its deviation; nnU-Net's scheme for CT. One set of numbers for every image.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

struct CtNormalizeOptions {
  double lower = 0, upper = 0;  ///< HU, or units of `window`; lower < upper
  double mean = 0, std = 1;     ///< std > 0

  static config::Key Keys();
  /// From a value that passed Keys(). FailedPrecondition without all four numbers.
  static StatusOr<CtNormalizeOptions> FromJson(const Json& options);
};

/// Its numbers among the statistics of a lock: {"lower", "upper", "mean", "std", ..., "window"}.
inline constexpr std::string_view kCtForeground = "ct_foreground";

/// Where a config has the op without numbers ("preprocess[0].ct_normalize"), "" where it does not.
std::string AwaitingCtNormalize(const Json& preprocess, const Json& augment);
/// Puts in the numbers of a lock. InvalidArgument for what holds no such numbers.
Status SettleCtNormalize(Json& preprocess, Json& augment, const Json& statistics);

}  // namespace patchbay::plan
