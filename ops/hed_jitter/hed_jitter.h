// hed_jitter: scales and shifts the amounts of haematoxylin, eosin and DAB, in the fixed basis of
// Ruifrok and Johnston.
#pragma once

#include <vector>

#include "ops/colour/optical_density.h"
#include "ops/draws/draws.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct HedJitterOptions {
  double p = kDefaultProbability;
  double alpha = 0.05;  ///< each amount is multiplied by a number within 1 - alpha .. 1 + alpha
  double beta = 0.05;   ///< and raised by one within -beta .. beta, natural optical density
  bool dab = true;      ///< the third stain too

  static constexpr plan::OpNumber kNumber{11};
  static std::vector<plan::Option<HedJitterOptions>> Table();
};

/// Word 0 of the first block decides whether it acts; words 1 to 3 are the factors of haematoxylin,
/// eosin and DAB; words 0 to 2 of the second block are the offsets added to them.
OdStep DrawHedJitter(const HedJitterOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
