#include "workers/plots/lettering.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "workers/plots/glyphs.h"

namespace patchbay::workers {
namespace {

constexpr double kWeight = 1.75, kBoldWeight = 2.7;  ///< of the strokes, in glyph units
constexpr int kArcStepDegrees = 12;
constexpr std::string_view kDots = "...";

/// The characters of UTF-8; what is malformed gives one unknown character a byte.
std::u32string Characters(std::string_view text) {
  std::u32string characters;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      characters.push_back(byte);
      continue;
    }
    // All glyphs beyond ASCII are two bytes long.
    const bool pair = (byte & 0xE0) == 0xC0 && i + 1 < text.size() &&
                      (static_cast<unsigned char>(text[i + 1]) & 0xC0) == 0x80;
    if (pair) {
      const auto next = static_cast<unsigned char>(text[++i]);
      characters.push_back(static_cast<char32_t>((byte & 0x1F) << 6 | (next & 0x3F)));
    } else {
      characters.push_back(0);
    }
  }
  return characters;
}

/// A glyph's path, command by command, into lines of points in glyph units.
class GlyphPen {
 public:
  GlyphPen(double left, std::vector<std::vector<Point>>& lines) : left_(left), lines_(lines) {}

  void Draw(const char* path) {
    const char* at = path;
    begun_ = false;
    while (*at != '\0') {
      const char command = *at++;
      if (command == ' ') continue;
      if (command == 'A') {
        Arc(at);
        continue;
      }
      const double x = Next(at), y = Next(at);
      if (command == 'L') {
        Add({x, y});
        continue;
      }
      begun_ = false;
      Add({x, y});
      if (command == 'D') begun_ = false;
    }
  }

 private:
  static double Next(const char*& at) {
    while (*at == ' ') ++at;
    const char* end = at;
    while (*end != ' ' && *end != '\0') ++end;
    double value = 0;
    std::from_chars(at, end, value);
    at = end;
    return value;
  }

  void Arc(const char*& at) {
    std::array<double, 6> v{};
    for (double& value : v) value = Next(at);
    const auto [cx, cy, rx, ry, from, to] = v;
    const int steps = std::max(1, static_cast<int>(std::fabs(to - from)) / kArcStepDegrees);
    for (int i = 0; i <= steps; ++i) {
      const double angle = (from + (to - from) * i / steps) * std::numbers::pi / 180;
      Add({cx + rx * std::cos(angle), cy + ry * std::sin(angle)});
    }
  }

  void Add(Point point) {
    if (!begun_) lines_.emplace_back();
    begun_ = true;
    lines_.back().push_back({left_ + point.x, point.y});
  }

  double left_;
  std::vector<std::vector<Point>>& lines_;
  bool begun_ = false;
};

double WidthInUnits(const std::u32string& characters) {
  double width = 0;
  for (const char32_t c : characters) width += GlyphOf(c).width + kGlyphGap;
  return characters.empty() ? 0 : width - kGlyphGap;
}

}  // namespace

double TextWidth(std::string_view text, const TextStyle& style) {
  return WidthInUnits(Characters(text)) * style.size / kGlyphUnits;
}

void DrawText(Canvas& canvas, Point at, std::string_view text, const TextStyle& style) {
  const std::u32string characters = Characters(text);
  const double scale = style.size / kGlyphUnits;
  double left = 0;
  if (style.align != Align::kLeft) {
    left = -WidthInUnits(characters) * (style.align == Align::kCenter ? 0.5 : 1.0);
  }
  std::vector<std::vector<Point>> lines;
  for (const char32_t c : characters) {
    const Glyph& glyph = GlyphOf(c);
    GlyphPen(left, lines).Draw(glyph.path);
    left += glyph.width + kGlyphGap;
  }
  for (std::vector<Point>& line : lines) {
    for (Point& p : line) {
      p = style.upwards ? Point{at.x - p.y * scale, at.y - p.x * scale}
                        : Point{at.x + p.x * scale, at.y - p.y * scale};
    }
  }
  Stroke stroke;
  stroke.color = style.color;
  stroke.width = (style.bold ? kBoldWeight : kWeight) * scale;
  canvas.DrawLines(lines, stroke);
}

std::string Shortened(std::string_view text, double width, const TextStyle& style) {
  if (TextWidth(text, style) <= width) return std::string(text);
  // Byte by byte from both ends: a character that is cut is drawn as a box, never misread.
  for (std::size_t kept = text.size() / 2; kept > 0; --kept) {
    std::string shorter(text.substr(0, kept));
    shorter.append(kDots).append(text.substr(text.size() - kept));
    if (TextWidth(shorter, style) <= width) return shorter;
  }
  return std::string(kDots);
}

}  // namespace patchbay::workers
