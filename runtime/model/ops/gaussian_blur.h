// gaussian_blur: a Gaussian filter of a width drawn for each patch.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

inline constexpr double kMaxBlurSigma = 16;

struct GaussianBlurOptions {
  double p = kDefaultProbability;
  DrawRange sigma = {0.5, 1.0};  ///< px of the finished patch

  static config::Key Keys();
  /// From a value that passed Keys().
  static GaussianBlurOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
