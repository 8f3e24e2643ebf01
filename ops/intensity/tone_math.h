// Linear maps with bounds: window, the normalisers, and maps computed from the statistics of a
// patch; the grey of a pixel within 0..1. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// Least deviation that values are divided by.
inline constexpr double kMinDeviation = 1e-8;

/// (value - low) scale, within 0 and 1.
struct WindowStep {
  float low = 0, scale = 1;
};

/// value slope + offset.
struct ValueLine {
  float slope = 1, offset = 0;
};

/// (value - mean) / std.
inline ValueLine NormalisingLine(double mean, double std) {
  return {static_cast<float>(1 / std), static_cast<float>(-mean / std)};
}

/// ct_normalize: clips, then a line.
struct ClippedLine {
  float lower = 0, upper = 0;
  ValueLine line;
};

/// NaN becomes the window's low end.
template <typename V>
PB_LANE_CODE V Applied(const WindowStep& window, V x) {
  return Min(Max((x - V::All(window.low)) * V::All(window.scale), V::All(0.0f)), V::All(1.0f));
}

template <typename V>
PB_LANE_CODE V Applied(const ValueLine& line, V x) {
  return FusedAdd(x, V::All(line.slope), V::All(line.offset));
}

template <typename V>
PB_LANE_CODE V Applied(const ClippedLine& clip, V x) {
  return Applied(clip.line, Min(Max(x, V::All(clip.lower)), V::All(clip.upper)));
}

template <typename V>
PB_LANE_CODE V Applied(const LineWithin& line, V x) {
  x = FusedAdd(x, V::All(line.slope), V::All(line.offset));
  return Min(Max(x, V::All(line.least)), V::All(line.most));
}

template <typename V>
PB_LANE_CODE V Within01(V x) {
  return Min(Max(x, V::All(0.0f)), V::All(1.0f));
}

template <typename V>
PB_LANE_CODE V GreyOf01(const V (&rgb)[3]) {
  return FusedAdd(V::All(0.299f), rgb[0],
                  FusedAdd(V::All(0.587f), rgb[1], V::All(0.114f) * rgb[2]));
}

}  // namespace patchbay::ops
