// Axes with round ticks around a panel into which data is drawn.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "workers/plots/drawing.h"

namespace patchbay::workers {

struct Tick {
  double value = 0;
  std::string label;  ///< "" for a minor one: no grid line
};

struct Scale {
  double low = 0, high = 1;  ///< low < high; above 0 when logarithmic
  bool logarithmic = false;

  /// 0 at low, 1 at high, linear beyond both.
  double At(double value) const;
};

/// About `count` ticks (one more or one fewer) at multiples of 1, 2 or 5 times a power of ten; on a
/// logarithmic scale at the powers of ten, with 2 and 5 labelled too when there are few of those.
std::vector<Tick> RoundTicks(const Scale& scale, int count);

/// The scale from `low` to `high` widened to round numbers; never empty, for any input.
Scale RoundScale(double low, double high);

struct Axis {
  Scale scale;
  std::string title;
  std::vector<Tick> ticks;
};

/// A rectangle of the drawing with axes at its left and below. Drawing order: Grid, data, Frame.
class Panel {
 public:
  Panel(Drawing& drawing, PlotPoint top_left, PlotPoint bottom_right, Axis x, Axis y);

  double left() const { return top_left_.x; }
  double right() const { return bottom_right_.x; }
  double top() const { return top_left_.y; }
  double bottom() const { return bottom_right_.y; }
  const Axis& x() const { return x_; }
  const Axis& y() const { return y_; }
  double AtX(double x) const;
  double AtY(double y) const;
  PlotPoint At(double x, double y) const { return {AtX(x), AtY(y)}; }

  void Grid();
  /// The frame, ticks and titles: above the data, so that it covers their ends.
  void Frame();

  /// Data, cut off at the frame. xs and ys are of one length, xs rise.
  void Line(std::span<const double> xs, std::span<const double> ys, const Stroke& stroke);
  void Band(std::span<const double> xs, std::span<const double> lows, std::span<const double> highs,
            Color color);
  void VerticalLine(double x, const Stroke& stroke);
  void HorizontalLine(double y, const Stroke& stroke);

 private:
  Drawing& drawing_;
  PlotPoint top_left_, bottom_right_;
  Axis x_, y_;
};

/// Positions as near to `wanted` (rising) as they can be with `gap` between neighbours, within
/// [low, high]; when they do not fit they are squeezed evenly.
std::vector<double> SpreadOut(std::span<const double> wanted, double gap, double low, double high);

/// `value` with that many digits after the point.
std::string Digits(double value, int digits);
/// "1,234,567".
std::string Grouped(std::uint64_t value);

/// The curves' 5, 25, 75 and 95 % quantiles at every place.
struct Bands {
  std::array<std::vector<double>, 4> quantiles;
};

/// `curves`: of one length each, at least one curve.
Bands BandsOf(const std::vector<std::vector<double>>& curves);

}  // namespace patchbay::workers
