// Text on a canvas.
#pragma once

#include <string>
#include <string_view>

#include "workers/plots/canvas.h"

namespace patchbay::workers {

enum class Align { kLeft, kCenter, kRight };

struct TextStyle {
  double size = 22;  ///< pixels from one line to the next, about; capitals are 0.7 of it
  Color color = {40, 40, 40};
  bool bold = false;
  Align align = Align::kLeft;
  bool upwards = false;  ///< turned by 90 degrees, to be read from the right
};

/// Pixels that DrawText covers along the line.
double TextWidth(std::string_view text, const TextStyle& style);

/// `at`: where the baseline begins, ends or has its middle, by style.align. UTF-8; what has no
/// glyph is an empty box.
void DrawText(Canvas& canvas, Point at, std::string_view text, const TextStyle& style);

/// `text`, or its beginning and end with "..." between, at most `width` pixels long.
std::string Shortened(std::string_view text, double width, const TextStyle& style);

}  // namespace patchbay::workers
