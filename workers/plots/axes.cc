#include "workers/plots/axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "runtime/model/results/usual_range.h"

namespace patchbay::workers {
namespace {

constexpr Color kAxisInk = {40, 40, 40}, kGridColor = {205, 208, 212};
constexpr double kTickLength = 8, kMinorTickLength = 4, kTickTextSize = 19, kTitleSize = 22;
constexpr double kGridDash = 5;
constexpr int kMaxTicks = 50;
constexpr double kMaxExponent = 15;

/// 1, 2 or 5 times a power of ten: the smallest that makes at most `count` steps.
double RoundStep(double length, int count) {
  const double least = length / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int DigitsOf(double step) {
  return static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, 9.0));
}

std::vector<Tick> LogTicks(const Scale& scale) {
  std::vector<Tick> ticks;
  const double decades = std::log10(scale.high / scale.low);
  const int first = static_cast<int>(std::floor(std::log10(scale.low)));
  const int last = static_cast<int>(std::ceil(std::log10(scale.high)));
  const int every = std::max(1, (last - first) / 8);
  for (int exponent = first; exponent <= last; ++exponent) {
    const double power = std::pow(10.0, exponent);
    for (int factor = 1; factor < 10; ++factor) {
      const double value = factor * power;
      if (value < scale.low * (1 - 1e-9) || value > scale.high * (1 + 1e-9)) continue;
      const bool labelled = factor == 1 ? (exponent - first) % every == 0
                                        : (factor == 2 || factor == 5) && decades < 3.5;
      const std::string label = Digits(value, std::clamp(-exponent, 0, 9));
      ticks.push_back({value, labelled ? label : std::string()});
    }
  }
  return ticks;
}

}  // namespace

std::string Digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  // No "-0.00".
  const std::string shown = text.data();
  return shown.find_first_not_of("-0.") == std::string::npos && shown[0] == '-' ? shown.substr(1)
                                                                                : shown;
}

std::string Grouped(std::uint64_t value) {
  std::string digits = std::to_string(value), text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

double Scale::At(double value) const {
  if (!logarithmic) return (value - low) / (high - low);
  return std::log(std::max(value, low * 1e-6) / low) / std::log(high / low);
}

std::vector<Tick> RoundTicks(const Scale& scale, int count) {
  if (scale.logarithmic) return LogTicks(scale);
  std::vector<Tick> ticks;
  const double step = RoundStep(scale.high - scale.low, count);
  const double first = std::ceil(scale.low / step - 1e-6);
  for (int i = 0; i < kMaxTicks; ++i) {
    const double value = (first + i) * step;
    if (value > scale.high + 1e-6 * step) break;
    ticks.push_back({value, Digits(value, DigitsOf(step))});
  }
  return ticks;
}

Scale RoundScale(double low, double high) {
  if (low > high) std::swap(low, high);
  const double least =
      std::max({std::fabs(low), std::fabs(high), 1.0}) * std::pow(10.0, -kMaxExponent + 6);
  if (!(high - low > least)) {
    low -= 0.5;
    high += 0.5;
  }
  const double step = RoundStep(high - low, 8);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, false};
}

Panel::Panel(Drawing& drawing, PlotPoint top_left, PlotPoint bottom_right, Axis x, Axis y)
    : drawing_(drawing),
      top_left_(top_left),
      bottom_right_(bottom_right),
      x_(std::move(x)),
      y_(std::move(y)) {}

double Panel::AtX(double x) const { return left() + x_.scale.At(x) * (right() - left()); }
double Panel::AtY(double y) const { return bottom() - y_.scale.At(y) * (bottom() - top()); }

void Panel::Grid() {
  Stroke stroke;
  stroke.color = kGridColor;
  stroke.width = 1.2;
  stroke.dash = kGridDash;
  for (const Tick& tick : x_.ticks) {
    if (!tick.label.empty()) VerticalLine(tick.value, stroke);
  }
  for (const Tick& tick : y_.ticks) {
    if (!tick.label.empty()) HorizontalLine(tick.value, stroke);
  }
}

void Panel::Frame() {
  Stroke stroke;
  stroke.color = kAxisInk;
  stroke.width = 1.8;
  const std::array<PlotPoint, 5> corners = {
      top_left_, {right(), top()}, bottom_right_, {left(), bottom()}, top_left_};
  drawing_.DrawLine(corners, stroke);
  TextStyle text;
  text.size = kTickTextSize;
  text.align = Align::kCenter;
  for (const Tick& tick : x_.ticks) {
    const double x = AtX(tick.value);
    const double length = tick.label.empty() ? kMinorTickLength : kTickLength;
    drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{x, bottom()}, {x, bottom() + length}},
                      stroke);
    drawing_.DrawText({x, bottom() + kTickLength + kTickTextSize}, tick.label, text);
  }
  text.align = Align::kRight;
  double widest = 0;
  for (const Tick& tick : y_.ticks) {
    const double y = AtY(tick.value);
    const double length = tick.label.empty() ? kMinorTickLength : kTickLength;
    drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{left() - length, y}, {left(), y}}, stroke);
    drawing_.DrawText({left() - kTickLength - 6, y + 0.36 * kTickTextSize}, tick.label, text);
    widest = std::max(widest, drawing_.TextWidth(tick.label, text));
  }
  TextStyle title;
  title.size = kTitleSize;
  title.align = Align::kCenter;
  drawing_.DrawText({(left() + right()) / 2, bottom() + kTickLength + kTickTextSize + 38}, x_.title,
                    title);
  title.upwards = true;
  drawing_.DrawText({left() - kTickLength - 24 - widest, (top() + bottom()) / 2}, y_.title, title);
}

void Panel::Line(std::span<const double> xs, std::span<const double> ys, const Stroke& stroke) {
  std::vector<PlotPoint> points;
  for (std::size_t i = 0; i < xs.size(); ++i) points.push_back(At(xs[i], ys[i]));
  drawing_.Clip(top_left_, bottom_right_);
  drawing_.DrawLine(points, stroke);
  drawing_.ClipNothing();
}

void Panel::Band(std::span<const double> xs, std::span<const double> lows,
                 std::span<const double> highs, Color color) {
  std::vector<PlotPoint> points;
  for (std::size_t i = 0; i < xs.size(); ++i) points.push_back(At(xs[i], highs[i]));
  for (std::size_t i = xs.size(); i-- > 0;) points.push_back(At(xs[i], lows[i]));
  drawing_.Clip(top_left_, bottom_right_);
  drawing_.FillPolygon(points, color);
  drawing_.ClipNothing();
}

void Panel::VerticalLine(double x, const Stroke& stroke) {
  const double at = AtX(x);
  if (at < left() - 0.5 || at > right() + 0.5) return;
  drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{at, bottom()}, {at, top()}}, stroke);
}

void Panel::HorizontalLine(double y, const Stroke& stroke) {
  const double at = AtY(y);
  if (at < top() - 0.5 || at > bottom() + 0.5) return;
  drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{left(), at}, {right(), at}}, stroke);
}

std::vector<double> SpreadOut(std::span<const double> wanted, double gap, double low, double high) {
  std::vector<double> places(wanted.begin(), wanted.end());
  if (places.empty()) return places;
  const auto count = static_cast<double>(places.size() - 1);
  if (count > 0) gap = std::min(gap, (high - low) / count);
  double least = low;
  for (double& place : places) {
    place = std::max(place, least);
    least = place + gap;
  }
  double most = high;
  for (std::size_t i = places.size(); i-- > 0;) {
    places[i] = std::min(places[i], most);
    most = places[i] - gap;
  }
  return places;
}

Bands BandsOf(const std::vector<std::vector<double>>& curves) {
  Bands bands;
  std::vector<double> column(curves.size());
  for (std::size_t i = 0; i < curves.front().size(); ++i) {
    for (std::size_t k = 0; k < curves.size(); ++k) column[k] = curves[k][i];
    std::size_t quantile = 0;
    for (const double share : {0.05, 0.25, 0.75, 0.95}) {
      bands.quantiles[quantile++].push_back(results::QuantileOf(column, share));
    }
  }
  return bands;
}

}  // namespace patchbay::workers
