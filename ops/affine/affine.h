// affine: the linear map that a patch draws, of an image and of a volume.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/geometry/place_map.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/affine.h"

namespace patchbay::ops {

/// Where the finished pixels of a height x width image come from: word 0 of the key's first block
/// decides whether anything changes, words 1 to 3 are angle, scale and shear; words 0 and 1 of the
/// second block shift along y and x.
PlaceMap DrawAffine(const plan::AffineOptions& options, const DrawKey& key, std::int64_t height,
                    std::int64_t width);

/// What affine draws for a volume. Source = centre + T (place - centre) in millimetres, (z, y, x)
/// order, T = diag(1 / scale) Bz By Bx, where each B turns the plane of the two other axes, first
/// axis before second, by [[cos, -sin], [sin, cos]].
struct VolumeTurn {
  double degrees[3] = {};       ///< about z, y, x; 0 where an axis that it turns has one voxel
  double scale[3] = {1, 1, 1};  ///< one factor; 1 along axes of one voxel
};

/// Word 0 of the key's first block: whether; words 1 to 3: the angles; word 0 of the second: the
/// scale. A patch of one slice stays in it, along any axis.
std::optional<VolumeTurn> DrawTurn(const plan::AffineOptions& options, const DrawKey& key,
                                   const Extent& patch);

}  // namespace patchbay::ops
