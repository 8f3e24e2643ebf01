// The letters: strokes drawn for this project, in units of 1/20 of the text size.
#pragma once

#include <cstdint>

namespace patchbay::workers {

inline constexpr double kGlyphUnits = 20;  ///< of the text size
inline constexpr double kCapHeight = 14;   ///< of a capital or a digit, above the baseline
inline constexpr double kGlyphGap = 3.8;   ///< from one glyph's strokes to the next one's

/// `path`: "M x y" begins a stroke, "L x y" goes on, "A cx cy rx ry from to" goes on along an
/// ellipse (degrees, counter-clockwise when `to` is larger), "D x y" is a dot. y points up from the
/// baseline. Numbers have at most two digits after the point.
struct Glyph {
  char32_t code;
  double width;  ///< of the strokes' centre lines
  const char* path;
};

/// The glyph of a character: printable ASCII, and plus-minus, superscript two, micro, times. What
/// is not there is an empty box.
const Glyph& GlyphOf(char32_t code);

}  // namespace patchbay::workers
