// Facts that the colour ops know of the image that a patch is cut from.
#pragma once

#include <cstdint>

#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

class IccLookup;

/// A view: what it points to outlives the call it is given to.
struct ImageColours {
  ImageColours() = default;
  /// The image has a Macenko fit alone.
  ImageColours(const plan::MacenkoFit* fit)  // NOLINT(google-explicit-constructor)
      : macenko(fit) {}

  const plan::MacenkoFit* macenko = nullptr;    ///< for stain_normalize: macenko/cucim
  const plan::ReinhardFit* reinhard = nullptr;  ///< for stain_normalize: reinhard
  /// For icc_to_srgb; null: the image has no profile, its colours are sRGB as they are.
  const IccLookup* icc = nullptr;
  /// For stain_normalize: which of its references the image is mapped to.
  std::uint32_t stain_reference = 0;
};

}  // namespace patchbay::ops
