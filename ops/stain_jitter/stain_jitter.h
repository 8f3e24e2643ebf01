// stain_jitter: scales and shifts the amounts of haematoxylin and eosin, in the basis of the
// reference stains.
#pragma once

#include <vector>

#include "ops/colour/optical_density.h"
#include "ops/draws/draws.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

struct StainJitterOptions {
  double p = kDefaultProbability;
  double alpha = 0.2;  ///< each amount is multiplied by a number within 1 - alpha .. 1 + alpha
  double beta = 0.2;   ///< and raised by one within -beta .. beta, natural optical density

  static constexpr plan::OpNumber kNumber{10};
  static std::vector<plan::Option<StainJitterOptions>> Table();
};

/// Words of the first block: whether it acts, then the factors of haematoxylin and eosin; words of
/// the second: the offsets added to them. The residual is kept.
OdStep DrawStainJitter(const StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key);

}  // namespace patchbay::ops
