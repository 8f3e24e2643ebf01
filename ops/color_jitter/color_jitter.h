// color_jitter: brightness, contrast, saturation and hue, in an order drawn for each patch.
#pragma once

#include <optional>
#include <vector>

#include "ops/color_jitter/color_jitter_math.h"
#include "ops/draws/draws.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct ColorJitterOptions {
  double p = kDefaultProbability;
  DrawRange brightness = {1, 1};  ///< factor
  DrawRange contrast = {1, 1};    ///< factor about the patch's mean grey
  DrawRange saturation = {1, 1};  ///< 0 is grey
  DrawRange hue = {};             ///< turns of the colour circle

  static constexpr plan::OpNumber kNumber{12};
  static std::vector<plan::Option<ColorJitterOptions>> Table();
};

/// Word 0 of the first block: whether; word 1: which of the 24 orders; the second block:
/// brightness, contrast, saturation, hue. Nothing when the patch stays as it is.
std::optional<ColorJitter> DrawColorJitter(const ColorJitterOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
