// A picture that is drawn on: anti-aliased lines, areas, discs and text in opaque or translucent
// colour. Pictures are drawn with cairo here and, for glyphs, in font.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

struct _cairo;
struct FT_FaceRec_;
struct FT_LibraryRec_;

struct _cairo;

namespace patchbay::workers {

// The letters of the pictures: DejaVu Sans, part of this program, read by FreeType. Fonts that are
// installed on a machine are never looked at. The only file that includes FreeType.

/// One weight of the font. Lengths are in ems, so that text has the same shape at every size;
/// outlines are unhinted. Text is UTF-8, laid out one character after the other with the font's
/// kerning; a character that the font lacks, or a malformed byte, is an empty box.
class Font {
 public:
  static Font Regular();
  static Font Bold();

  double WidthOf(std::string_view text) const;

  /// Adds the outlines of `text`, begun `left` ems from the origin, to the path of `context`, whose
  /// unit is one em and whose y points up.
  void AddOutline(std::string_view text, double left, _cairo* context) const;

 private:
  struct Release {
    void operator()(FT_LibraryRec_* library) const;
    void operator()(FT_FaceRec_* face) const;
  };

  explicit Font(std::string_view file);

  std::unique_ptr<FT_LibraryRec_, Release> library_;  // outlives the face
  std::unique_ptr<FT_FaceRec_, Release> face_;
};

/// In pixels; (0, 0) is the top left corner of the first pixel, y points down.
struct PlotPoint {
  double x = 0, y = 0;
};

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  double alpha = 1;  ///< 0 = invisible, 1 = opaque

  Color Faded(double to) const { return {red, green, blue, to}; }
};

struct Stroke {
  Color color;
  double width = 1;  ///< pixels; ends and corners are round
  double dash = 0;   ///< pixels drawn, then the same number left out; 0 = a solid line
};

enum class Align { kLeft, kCenter, kRight };

struct TextStyle {
  double size = 20;  ///< pixels an em; capitals are about 0.73 of it
  Color color = {40, 40, 40};
  bool bold = false;
  Align align = Align::kLeft;
  bool upwards = false;  ///< turned by 90 degrees, to be read from the right
};

/// Drawing order is painting order. Coordinates are snapped to 1/64 pixel, so that the last bit of
/// a logarithm does not change a picture; everything outside the picture is cut off. Text is UTF-8:
/// a character that the font lacks, or a malformed byte, is an empty box.
///
/// Movable; a moved-from drawing may only be destroyed. Holds about 4 bytes per pixel.
class Drawing {
 public:
  Drawing(int width, int height, Color background);

  int width() const { return width_; }
  int height() const { return height_; }

  /// Restricts painting to this rectangle, widened to whole pixels, from now on.
  void Clip(PlotPoint top_left, PlotPoint bottom_right);
  void ClipNothing();

  void FillRect(PlotPoint top_left, PlotPoint bottom_right, Color color);
  /// Even-odd inside; the last point is joined to the first.
  void FillPolygon(std::span<const PlotPoint> points, Color color);
  void FillDisc(PlotPoint center, double radius, Color color);
  /// One line through the points; where it crosses itself it is painted once.
  void DrawLine(std::span<const PlotPoint> points, const Stroke& stroke);

  /// Pixels, (height, width, 3) of uint8 with any strides, scaled to the rectangle: averaged where
  /// it is smaller, smooth where it is larger.
  void DrawPicture(PlotPoint top_left, PlotPoint bottom_right, const ConstTensorView& rgb);

  /// `at`: where the baseline begins, ends or has its middle, by style.align.
  void DrawText(PlotPoint at, std::string_view text, const TextStyle& style);
  /// Pixels that DrawText takes along the line.
  double TextWidth(std::string_view text, const TextStyle& style) const;
  /// `text`, or its beginning and end with "..." between, at most `width` pixels long.
  std::string Shortened(std::string_view text, double width, const TextStyle& style) const;

  /// The picture as a PNG file of 8-bit RGB, without time or text: the same picture gives the same
  /// bytes. Internal when cairo ran out of memory, here or while drawing.
  StatusOr<std::string> Png() const;

 private:
  struct Release {
    void operator()(_cairo* context) const;
  };

  void SetColor(Color color);
  const Font& FontOf(const TextStyle& style) const { return style.bold ? bold_ : regular_; }

  int width_, height_;
  std::unique_ptr<_cairo, Release> context_;
  Font regular_, bold_;
};

}  // namespace patchbay::workers
