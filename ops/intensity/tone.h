// window and the normalisers as the constants of their formulas (tone_math.h).
#pragma once

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

}  // namespace patchbay::ops
