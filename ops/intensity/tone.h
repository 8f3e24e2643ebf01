// window and the normalisers as the constants of their formulas (tone_math.h).
#pragma once

namespace patchbay::ops {

/// (value - low) scale, within 0 and 1.
struct WindowStep {
  float low = 0, scale = 1;
};

/// value slope + offset.
struct ValueLine {
  float slope = 1, offset = 0;
};

/// ct_normalize: clips, then a line.
struct ClippedLine {
  float lower = 0, upper = 0;
  ValueLine line;
};

}  // namespace patchbay::ops
