#include "workers/plots/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace patchbay::workers {
namespace {

constexpr double kSnap = 64;
constexpr int kRowsInPixel = 16;  ///< scan lines of a polygon in one row of pixels

double Snapped(double value) {
  // Beyond every canvas; keeps later arithmetic and conversions to int in range.
  constexpr double kFar = 1e6;
  if (!(value > -kFar)) return -kFar;
  return std::nearbyint(std::min(value, kFar) * kSnap) / kSnap;
}

Point Snapped(Point point) { return {Snapped(point.x), Snapped(point.y)}; }

double DistanceToSegment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length = dx * dx + dy * dy;
  double along = 0;
  if (length > 0) along = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0);
  const double ex = a.x + along * dx - p.x, ey = a.y + along * dy - p.y;
  return std::sqrt(ex * ex + ey * ey);
}

std::uint8_t Mixed(std::uint8_t below, std::uint8_t above, double share) {
  return static_cast<std::uint8_t>(std::nearbyint(below + (above - below) * share));
}

}  // namespace

Canvas::Canvas(int width, int height, Color background)
    : width_(width),
      height_(height),
      pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3),
      coverage_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0.0f) {
  ClipNothing();
  touched_ = {width_, height_, 0, 0};
  for (std::size_t i = 0; i < pixels_.size(); i += 3) {
    pixels_[i] = background.red;
    pixels_[i + 1] = background.green;
    pixels_[i + 2] = background.blue;
  }
}

void Canvas::Clip(Point top_left, Point bottom_right) {
  const Point a = Snapped(top_left), b = Snapped(bottom_right);
  clip_ = {std::clamp(static_cast<int>(std::floor(a.x)), 0, width_),
           std::clamp(static_cast<int>(std::floor(a.y)), 0, height_),
           std::clamp(static_cast<int>(std::ceil(b.x)), 0, width_),
           std::clamp(static_cast<int>(std::ceil(b.y)), 0, height_)};
}

void Canvas::ClipNothing() { clip_ = {0, 0, width_, height_}; }

/// Grows the touched area; afterwards it lies within the clip.
void Canvas::Touch(double left, double top, double right, double bottom) {
  touched_.left = std::min(touched_.left, std::max(clip_.left, static_cast<int>(std::floor(left))));
  touched_.top = std::min(touched_.top, std::max(clip_.top, static_cast<int>(std::floor(top))));
  touched_.right =
      std::max(touched_.right, std::min(clip_.right, static_cast<int>(std::ceil(right))));
  touched_.bottom =
      std::max(touched_.bottom, std::min(clip_.bottom, static_cast<int>(std::ceil(bottom))));
}

void Canvas::Paint(Color color) {
  for (int y = touched_.top; y < touched_.bottom; ++y) {
    for (int x = touched_.left; x < touched_.right; ++x) {
      const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                             static_cast<std::size_t>(x);
      const double share = std::min(1.0, static_cast<double>(coverage_[at])) * color.alpha;
      coverage_[at] = 0;
      if (share <= 0) continue;
      std::uint8_t* pixel = &pixels_[at * 3];
      pixel[0] = Mixed(pixel[0], color.red, share);
      pixel[1] = Mixed(pixel[1], color.green, share);
      pixel[2] = Mixed(pixel[2], color.blue, share);
    }
  }
  touched_ = {width_, height_, 0, 0};
}

void Canvas::AddSpan(int row, double left, double right, float share) {
  left = std::max(left, static_cast<double>(clip_.left));
  right = std::min(right, static_cast<double>(clip_.right));
  if (left >= right) return;
  float* line = &coverage_[static_cast<std::size_t>(row) * static_cast<std::size_t>(width_)];
  const auto add = [&](int x) {
    const double covered = std::min(right, x + 1.0) - std::max(left, static_cast<double>(x));
    line[x] += static_cast<float>(covered) * share;
  };
  const int first = static_cast<int>(left), last = static_cast<int>(std::ceil(right)) - 1;
  add(first);
  for (int x = first + 1; x < last; ++x) line[x] += share;  // covered whole
  if (last > first) add(last);
}

void Canvas::FillRect(Point top_left, Point bottom_right, Color color) {
  const std::array<Point, 4> corners = {
      top_left, {bottom_right.x, top_left.y}, bottom_right, {top_left.x, bottom_right.y}};
  FillPolygon(corners, color);
}

void Canvas::FillPolygon(std::span<const Point> points, Color color) {
  std::vector<Point> corners;
  double left = width_, right = 0, top = height_, bottom = 0;
  for (const Point& point : points) {
    const Point p = Snapped(point);
    corners.push_back(p);
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
  Touch(left, top, right, bottom);
  std::vector<double> crossings;
  for (int row = touched_.top; row < touched_.bottom; ++row) {
    for (int line = 0; line < kRowsInPixel; ++line) {
      const double y = row + (line + 0.5) / kRowsInPixel;
      crossings.clear();
      for (std::size_t i = 0; i < corners.size(); ++i) {
        const Point a = corners[i], b = corners[(i + 1) % corners.size()];
        if ((a.y <= y) != (b.y <= y)) {
          crossings.push_back(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x));
        }
      }
      std::sort(crossings.begin(), crossings.end());
      for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
        AddSpan(row, crossings[i], crossings[i + 1], 1.0f / kRowsInPixel);
      }
    }
  }
  Paint(color);
}

void Canvas::AddSegment(Point a, Point b, double radius) {
  const double reach = radius + 1;
  const double left = std::min(a.x, b.x) - reach, right = std::max(a.x, b.x) + reach;
  const double top = std::min(a.y, b.y) - reach, bottom = std::max(a.y, b.y) + reach;
  Touch(left, top, right, bottom);
  const int x_end = std::min(clip_.right, static_cast<int>(std::ceil(right)));
  const int y_end = std::min(clip_.bottom, static_cast<int>(std::ceil(bottom)));
  // Hairlines keep their weight: they are thinner than a pixel in coverage, not in width.
  const double drawn = std::max(radius, 0.5), weight = radius / drawn;
  for (int y = std::max(clip_.top, static_cast<int>(std::floor(top))); y < y_end; ++y) {
    float* line = &coverage_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_)];
    for (int x = std::max(clip_.left, static_cast<int>(std::floor(left))); x < x_end; ++x) {
      const double distance = DistanceToSegment({x + 0.5, y + 0.5}, a, b);
      const double covered = std::clamp(drawn + 0.5 - distance, 0.0, 1.0) * weight;
      line[x] = std::max(line[x], static_cast<float>(covered));
    }
  }
}

void Canvas::AddDashed(std::span<const Point> points, const Stroke& stroke) {
  const double on = stroke.dash, off = stroke.dash * stroke.gap_factor;
  double left = on;  // of the current dash or gap
  bool drawing = true;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    Point at = points[i];
    const Point end = points[i + 1];
    while (true) {
      const double dx = end.x - at.x, dy = end.y - at.y;
      const double length = std::sqrt(dx * dx + dy * dy);
      const double step = std::min(left, length);
      const Point next =
          length > 0 ? Point{at.x + dx * step / length, at.y + dy * step / length} : end;
      if (drawing) AddSegment(Snapped(at), Snapped(next), stroke.width / 2);
      left -= step;
      at = next;
      if (left > 0) break;
      drawing = !drawing;
      left = drawing ? on : off;
    }
  }
}

void Canvas::FillDisc(Point center, double radius, Color color) {
  const Point at = Snapped(center);
  AddSegment(at, at, radius);
  Paint(color);
}

void Canvas::DrawLine(std::span<const Point> points, const Stroke& stroke) {
  if (stroke.dash > 0) {
    AddDashed(points, stroke);
  } else {
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      AddSegment(Snapped(points[i]), Snapped(points[i + 1]), stroke.width / 2);
    }
  }
  Paint(stroke.color);
}

void Canvas::DrawLines(std::span<const std::vector<Point>> lines, const Stroke& stroke) {
  for (const std::vector<Point>& line : lines) {
    if (line.size() == 1) AddSegment(Snapped(line[0]), Snapped(line[0]), stroke.width / 2);
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      AddSegment(Snapped(line[i]), Snapped(line[i + 1]), stroke.width / 2);
    }
  }
  Paint(stroke.color);
}

}  // namespace patchbay::workers
