// hed_jitter: scales and shifts the amounts of haematoxylin, eosin and DAB, in the fixed basis of
// Ruifrok and Johnston.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct HedJitterOptions {
  double p = kDefaultProbability;
  double alpha = 0.05;  ///< each amount is multiplied by a number within 1 - alpha .. 1 + alpha
  double beta = 0.05;   ///< and raised by one within -beta .. beta, natural optical density
  bool dab = true;      ///< the third stain too

  static config::Key Keys();
  /// From a value that passed Keys().
  static HedJitterOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
