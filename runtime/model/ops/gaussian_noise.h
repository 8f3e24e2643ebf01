// gaussian_noise: adds normal noise to every value, of one standard deviation a patch.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct GaussianNoiseOptions {
  double p = kDefaultProbability;
  DrawRange std = {0, 0.02};  ///< in units of the full scale: 1 is white

  static config::Key Keys();
  /// From a value that passed Keys().
  static GaussianNoiseOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
