// color_jitter: brightness, contrast, saturation and hue, in an order drawn for each patch.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/draw_range.h"

namespace patchbay::plan {

struct ColorJitterOptions {
  double p = kDefaultProbability;
  DrawRange brightness = {1, 1};  ///< factor
  DrawRange contrast = {1, 1};    ///< factor about the patch's mean grey
  DrawRange saturation = {1, 1};  ///< 0 is grey
  DrawRange hue;                  ///< turns of the colour circle

  static config::Key Keys();
  /// From a value that passed Keys().
  static ColorJitterOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
