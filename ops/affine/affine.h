// affine: turns, scales, shears and shifts the patch about its centre, as one linear map.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/draws/draws.h"
#include "ops/geometry/image_moves.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

inline constexpr double kMinAffineScale = 0.1, kMaxAffineScale = 10, kMaxShearDegrees = 60;

struct AffineOptions {
  double p = kDefaultProbability;
  /// Clockwise as displayed; of volumes about z, y and x. One range in the config is all three.
  std::array<DrawRange, 3> degrees = {};
  DrawRange scale = {1, 1};  ///< larger means larger objects
  DrawRange shear = {};      ///< degrees, along x
  /// Largest shift along y and x, as a share of the patch's side.
  std::array<double, 2> translate = {0, 0};
  Border border = Border::kReflect101;

  /// The axes do not share one range.
  bool HasOneRangeAnAxis() const { return degrees[1] != degrees[0] || degrees[2] != degrees[0]; }

  static constexpr plan::OpNumber kNumber{6};
  static std::vector<plan::Option<AffineOptions>> Table();
};

/// The map from finished pixels of a height x width image to their source: word 0 of the key's
/// first block decides whether it changes anything, words 1 to 3 are angle, scale and shear; words
/// 0 and 1 of the second block shift along y and x.
PlaceMap DrawAffine(const AffineOptions& options, const DrawKey& key, std::int64_t height,
                    std::int64_t width);

/// The draw of affine for a volume. Source = centre + T (place - centre) in millimetres, (z, y, x)
/// order, T = diag(1 / scale) Bz By Bx, where each B turns the plane of the two other axes, first
/// axis before second, by [[cos, -sin], [sin, cos]].
struct VolumeRotation {
  double degrees[3] = {};       ///< about z, y, x; 0 if an axis that it rotates has one voxel
  double scale[3] = {1, 1, 1};  ///< one factor; 1 along axes of one voxel
};

/// Word 0 of the key's first block: whether; words 1 to 3: the angles; word 0 of the second: the
/// scale. A patch of one slice stays in it, along any axis.
std::optional<VolumeRotation> DrawTurn(const AffineOptions& options, const DrawKey& key,
                                       const Extent& patch);

}  // namespace patchbay::ops
