// stain_jitter: scales and shifts the amounts of haematoxylin and eosin, in the basis of the
// reference stains.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct StainJitterOptions {
  double p = kDefaultProbability;
  double alpha = 0.2;  ///< each amount is multiplied by a number within 1 - alpha .. 1 + alpha
  double beta = 0.2;   ///< and raised by one within -beta .. beta, natural optical density

  static config::Key Keys();
  /// From a value that passed Keys().
  static StainJitterOptions FromJson(const Json& options);
};

/// "alpha" and "beta", of both jitters of stains.
config::Key AlphaKey(double fallback);
config::Key BetaKey(double fallback);

}  // namespace patchbay::plan
