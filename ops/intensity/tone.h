// window and the normalisers as the constants of one formula (tone_math.h).
#pragma once

namespace patchbay::ops {

/// value -> window -> clip -> line.
struct Tone {
  bool has_window = false;
  float low = 0, scale = 1;  ///< window: (value - low) scale, within 0 and 1
  bool has_clip = false;
  float lower = 0, upper = 0;  ///< ct_normalize clips to these
  float slope = 1, offset = 0;
};

}  // namespace patchbay::ops
