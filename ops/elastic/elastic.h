// elastic: bends the patch by a cubic B-spline through a grid of control points.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ops/draws/draws.h"
#include "ops/geometry/image_moves.h"
#include "ops/geometry/volume_moves.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// Control points along an axis. The outer two of each end stay where they are.
inline constexpr int kMinElasticPoints = 5, kMaxElasticPoints = kFieldPointsMax,
                     kLockedElasticPoints = 2;

struct ElasticOptions {
  double p = kDefaultProbability;
  int points = 8;           ///< along each axis; larger means finer folds
  double amplitude = 0;     ///< px: each control point moves by up to that along every axis
  double amplitude_mm = 0;  ///< instead, of volumes: millimetres
  Border border = Border::kReflect101;

  static constexpr plan::OpNumber kNumber{7};
  static std::vector<plan::Option<ElasticOptions>> Table();
};

/// Along one axis: px of a patch, which may be one pixel wide and then has nothing to bend.
struct ElasticAxis {
  std::int64_t side = 1;
  double amplitude = 0;
};

/// InvalidArgument when the amplitude along an axis is half the spacing of its control points or
/// more: from there on the patch can fold over itself.
Status CheckFolding(int points, std::initializer_list<ElasticAxis> axes);
/// The same for options in pixels, and a patch of these side lengths.
Status CheckFolding(const ElasticOptions& options, std::initializer_list<std::int64_t> sides);

/// Word 0 of the key's first block decides whether anything changes; block i of its field stream
/// has the displacement of control point i along y (word 0) and x (word 1). The outer two of each
/// end are 0. Requires options that passed CheckFolding.
PixelField DrawElastic(const ElasticOptions& options, const DrawKey& key);

/// Block (z points + y) points + x of the key's field stream has the moves of that control point
/// along z, y and x in words 0 to 2. The outer two of each end stay. `amplitude` is in finished
/// voxels.
VolumeField DrawField(const ElasticOptions& options, const DrawKey& key,
                      const plan::PerAxis& amplitude, const Extent& patch);

}  // namespace patchbay::ops
