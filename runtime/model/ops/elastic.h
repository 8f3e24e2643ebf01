// elastic: bends the patch by a cubic B-spline through a grid of control points.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/affine.h"

namespace patchbay::plan {

/// Control points along an axis. The outer two of each end stay where they are.
inline constexpr int kMinElasticPoints = 5, kMaxElasticPoints = 16, kLockedElasticPoints = 2;

struct ElasticOptions {
  double p = kDefaultProbability;
  int points = 8;           ///< along each axis; larger means finer folds
  double amplitude = 0;     ///< px: each control point moves by up to that along every axis
  double amplitude_mm = 0;  ///< instead, of volumes: millimetres
  Border border = Border::kReflect101;

  static config::Key Keys();
  /// From a value that passed Keys().
  static ElasticOptions FromJson(const Json& options);
};

/// Pixels between control points along a side of the patch.
inline double ElasticSpacing(int points, std::int64_t side) {
  return static_cast<double>(side - 1) / (points - 3);
}

/// Along one axis: px of a patch, which may be one pixel wide and then has nothing to bend.
struct ElasticAxis {
  std::int64_t side = 1;
  double amplitude = 0;
};

/// InvalidArgument when the amplitude along an axis is half the spacing of its control points or
/// more: from there on the patch can fold over itself.
Status CheckFolding(int points, std::initializer_list<ElasticAxis> axes);
/// The same for options in pixels, of a patch of those sides.
Status CheckFolding(const ElasticOptions& options, std::initializer_list<std::int64_t> sides);

}  // namespace patchbay::plan
