// affine: turns, scales, shears and shifts the patch about its centre, as one linear map.
#pragma once

#include <array>
#include <string_view>

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

/// Pixels beyond the box that was read: the box mirrored about its outer pixels, mirrored about its
/// edges, or its outer pixels.
enum class Border : std::uint8_t { kReflect101, kReflect, kEdge };

/// "border", of ops that sample between pixels.
config::Key BorderKey();
Border BorderOf(const Json& options);

inline constexpr double kMinAffineScale = 0.1, kMaxAffineScale = 10, kMaxShearDegrees = 60;

struct AffineOptions {
  double p = kDefaultProbability;
  /// Clockwise as displayed; of volumes about z, y and x. One range in the config is all three.
  std::array<DrawRange, 3> degrees;
  DrawRange scale = {1, 1};  ///< larger means larger objects
  DrawRange shear;           ///< degrees, along x
  /// Largest shift along y and x, as a share of the patch's side.
  double translate_y = 0, translate_x = 0;
  Border border = Border::kReflect101;

  /// The axes do not share one range.
  bool HasOneRangeAnAxis() const { return degrees[1] != degrees[0] || degrees[2] != degrees[0]; }

  static config::Key Keys();
  /// From a value that passed Keys().
  static AffineOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
