// A picture that is drawn on: anti-aliased lines, areas and discs in opaque or translucent colour.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace patchbay::workers {

/// In pixels; (0, 0) is the top left corner of the first pixel, y points down.
struct Point {
  double x = 0, y = 0;
};

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  double alpha = 1;  ///< 0 = invisible, 1 = opaque

  Color Faded(double to) const { return {red, green, blue, to}; }
};

struct Stroke {
  Color color;
  double width = 1;       ///< pixels; ends and corners are round
  double dash = 0;        ///< pixels drawn, then as many left out; 0 = a whole line
  double gap_factor = 1;  ///< what is left out, in dashes
};

/// Drawing order is painting order. Coordinates are snapped to 1/64 pixel, so that the last bit of
/// a logarithm does not change a picture. What lies outside is cut off.
class Canvas {
 public:
  Canvas(int width, int height, Color background);

  int width() const { return width_; }
  int height() const { return height_; }
  /// Rows of red, green, blue.
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }

  /// From here on only what lies in this rectangle is painted.
  void Clip(Point top_left, Point bottom_right);
  void ClipNothing();

  void FillRect(Point top_left, Point bottom_right, Color color);
  /// Even-odd inside; the last point is joined to the first.
  void FillPolygon(std::span<const Point> points, Color color);
  void FillDisc(Point center, double radius, Color color);
  /// One line through the points; where it crosses itself it is painted once.
  void DrawLine(std::span<const Point> points, const Stroke& stroke);
  /// Several lines painted as one.
  void DrawLines(std::span<const std::vector<Point>> lines, const Stroke& stroke);

 private:
  struct Area {
    int left, top, right, bottom;
  };

  void AddSegment(Point a, Point b, double radius);
  void AddDashed(std::span<const Point> points, const Stroke& stroke);
  void AddSpan(int row, double left, double right, float share);
  void Touch(double left, double top, double right, double bottom);
  void Paint(Color color);

  int width_, height_;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> coverage_;  ///< of what is being drawn; 0 between two drawings
  Area clip_, touched_;
};

}  // namespace patchbay::workers
