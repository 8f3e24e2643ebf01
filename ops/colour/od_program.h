// The ops that are linear in optical density, composed in double into one map for each patch.
#pragma once

#include <array>

#include "ops/colour/colour_maps.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/hed_jitter.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/model/ops/stain_jitter.h"

namespace patchbay::ops {

using Matrix3 = std::array<std::array<double, 3>, 3>;

/// y = matrix x + offset, of natural optical densities (red, green, blue).
struct OdStep {
  Matrix3 matrix{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  std::array<double, 3> offset{};

  /// This step of what `inner` gives.
  OdStep After(const OdStep& inner) const;
  bool IsIdentity() const { return matrix == OdStep{}.matrix && offset == OdStep{}.offset; }
};

/// From the amounts of an image's stains to those of the reference: each scaled by the quotient of
/// the largest, then shown in the reference's colours. What is no stain is left out.
OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference);

/// Words 0 to 3 of the first block: whether, then the factors of haematoxylin and eosin; of the
/// second, what they are raised by. What is no stain stays.
OdStep DrawStainJitter(const plan::StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key);

/// Word 0 of the first block: whether; words 1 to 3 the factors of haematoxylin, eosin and DAB;
/// words 0 to 2 of the second what they are raised by.
OdStep DrawHedJitter(const plan::HedJitterOptions& options, const DrawKey& key);

/// The whole as the formula takes it. `white` is the largest value of the source's type; values are
/// in units of it, `od_white` in 255ths: what an optical density of 0 shows as.
OdMap OdMapOf(const OdStep& step, double od_white, double white);

}  // namespace patchbay::ops
