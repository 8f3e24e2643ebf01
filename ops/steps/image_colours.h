// The facts about a patch's image that the colour ops need.
#pragma once

#include <cstdint>

#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

class IccLookup;

/// A view: the pointed-to values must outlive the call that takes it.
struct ImageColours {
  ImageColours() = default;
  /// For an image that has only a Macenko fit.
  ImageColours(const plan::MacenkoFit* fit)  // NOLINT(google-explicit-constructor)
      : macenko(fit) {}

  const plan::MacenkoFit* macenko = nullptr;    ///< for stain_normalize: macenko/cucim
  const plan::ReinhardFit* reinhard = nullptr;  ///< for stain_normalize: reinhard
  /// For icc_to_srgb; null: the image has no profile, its colours are sRGB as they are.
  const IccLookup* icc = nullptr;
  /// For stain_normalize: index of the reference that the image is mapped to.
  std::uint32_t stain_reference = 0;
};

}  // namespace patchbay::ops
