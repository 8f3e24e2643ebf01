#include "ops/geometry/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

/// Samples that an axis is continued by at either end: the spline filter's memory of them is below
/// 1e-6 (0.268^12).
constexpr std::int64_t kMargin = 12;
/// The pole of the cubic B-spline, sqrt(3) - 2.
constexpr float kPole = -0.26794919243112270647f;
constexpr float kGain = 6.0f;

using Lanes = float __attribute__((vector_size(32)));
constexpr std::int64_t kLanes = 8;

/// out[i] = f(i-th of the rows), eight at a time.
template <typename Vector, typename Scalar>
void ForRow(std::int64_t width, const Vector& vector, const Scalar& scalar) {
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) vector(i);
  for (; i < width; ++i) scalar(i);
}

Lanes At(const float* row, std::int64_t i) {
  Lanes lanes;
  std::memcpy(&lanes, row + i, sizeof lanes);
  return lanes;
}
void Put(float* row, std::int64_t i, Lanes lanes) { std::memcpy(row + i, &lanes, sizeof lanes); }

/// row = row * a + other * b.
void Blend(float* row, float a, const float* other, float b, std::int64_t width) {
  ForRow(
      width, [&](std::int64_t i) { Put(row, i, At(row, i) * a + At(other, i) * b); },
      [&](std::int64_t i) { row[i] = row[i] * a + other[i] * b; });
}

void Scaled(const float* from, float a, float* row, std::int64_t width) {
  ForRow(
      width, [&](std::int64_t i) { Put(row, i, At(from, i) * a); },
      [&](std::int64_t i) { row[i] = from[i] * a; });
}

/// Turns samples into spline coefficients, down the rows of all columns at once. The rows include
/// the margins, in which the ends go on.
void FilterRows(float* rows, std::int64_t count, std::int64_t width) {
  // The filter starts as if the first row were repeated without end; likewise after the last row.
  Scaled(rows, kGain / (1 - kPole), rows, width);
  for (std::int64_t k = 1; k < count; ++k) {
    Blend(rows + k * width, kGain, rows + (k - 1) * width, kPole, width);
  }
  float* last = rows + (count - 1) * width;
  Scaled(last, -kPole / (1 - kPole), last, width);
  for (std::int64_t k = count - 2; k >= 0; --k) {
    Blend(rows + k * width, -kPole, rows + (k + 1) * width, kPole, width);
  }
}

/// out = the weighted sum of an axis' taps, rows at one distance.
void SumTaps(const Resample::Axis& axis, std::int64_t i, const float* rows, std::int64_t width,
             float* out) {
  const auto at = static_cast<std::size_t>(i);
  const float* row = rows + axis.first[at] * width;
  const float* w = axis.weight.data() + at * static_cast<std::size_t>(axis.taps);
  if (axis.taps == 1) {
    std::memcpy(out, row, static_cast<std::size_t>(width) * sizeof(float));
  } else if (axis.taps == 2) {
    const float* next = row + width;
    ForRow(
        width, [&](std::int64_t x) { Put(out, x, At(row, x) * w[0] + At(next, x) * w[1]); },
        [&](std::int64_t x) { out[x] = row[x] * w[0] + next[x] * w[1]; });
  } else {
    const float *b = row + width, *c = b + width, *d = c + width;
    ForRow(
        width,
        [&](std::int64_t x) {
          Put(out, x, (At(row, x) * w[0] + At(b, x) * w[1]) + (At(c, x) * w[2] + At(d, x) * w[3]));
        },
        [&](std::int64_t x) {
          out[x] = (row[x] * w[0] + b[x] * w[1]) + (c[x] * w[2] + d[x] * w[3]);
        });
  }
}

/// Rows `stride` apart, with margins, made ready for SumTaps.
void TakeRows(const Resample::Axis& axis, const float* in, std::int64_t stride, std::int64_t width,
              std::vector<float>& rows) {
  rows.resize(static_cast<std::size_t>((axis.from + 2 * kMargin) * width));
  for (std::int64_t k = -kMargin; k < axis.from + kMargin; ++k) {
    const float* from = in + std::clamp<std::int64_t>(k, 0, axis.from - 1) * stride;
    std::memcpy(rows.data() + (k + kMargin) * width, from,
                static_cast<std::size_t>(width) * sizeof(float));
  }
  if (axis.is_spline) FilterRows(rows.data(), axis.from + 2 * kMargin, width);
}

/// (rows, columns) to (columns, rows), in blocks that stay in the cache.
void Transpose(const float* in, std::int64_t rows, std::int64_t columns, float* out) {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t y = 0; y < rows; y += kBlock) {
    for (std::int64_t x = 0; x < columns; x += kBlock) {
      for (std::int64_t j = y; j < std::min(rows, y + kBlock); ++j) {
        for (std::int64_t i = x; i < std::min(columns, x + kBlock); ++i) {
          out[i * rows + j] = in[j * columns + i];
        }
      }
    }
  }
}

Resample::Axis AxisOf(std::int64_t from, std::int64_t to, int order) {
  Resample::Axis axis;
  axis.from = from;
  axis.to = to;
  axis.taps = order + 1;
  axis.is_spline = order == 3 && from > 1;
  for (std::int64_t i = 0; i < to; ++i) {
    double at =
        (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double whole = order == 0 ? std::floor(at + 0.5) : std::floor(at);
    const auto t = static_cast<float>(at - whole);
    const std::int64_t first = static_cast<std::int64_t>(whole) - (order == 3 ? 1 : 0);
    axis.first.push_back(static_cast<std::int32_t>(first + kMargin));
    if (order == 0) axis.weight.push_back(1);
    if (order == 1) axis.weight.insert(axis.weight.end(), {1 - t, t});
    if (order != 3) continue;
    const float u = 1 - t;
    axis.weight.insert(axis.weight.end(), {u * u * u / 6, (4 - 6 * t * t + 3 * t * t * t) / 6,
                                           (4 - 6 * u * u + 3 * u * u * u) / 6, t * t * t / 6});
  }
  return axis;
}

}  // namespace

StatusOr<Resample> Resample::Make(const Extent& from, const Extent& to,
                                  const std::array<int, 3>& orders) {
  for (const int order : orders) {
    if (order == 0 || order == 1 || order == 3) continue;
    return InvalidArgument("resample: order ", order, ": expected 0, 1 or 3");
  }
  if (from.Empty() || to.Empty()) {
    return InvalidArgument("resample: from ", from.ToString(), " to ", to.ToString(), " voxels");
  }
  Resample resample(from, to);
  resample.z_ = AxisOf(from.z, to.z, orders[0]);
  resample.y_ = AxisOf(from.y, to.y, orders[1]);
  resample.x_ = AxisOf(from.x, to.x, orders[2]);
  return resample;
}

void Resample::Planes(const float* in, std::int64_t first, std::int64_t count,
                      float* planes) const {
  std::vector<float> rows;
  std::vector<float> tall(static_cast<std::size_t>(to_.y * from_.x));
  std::vector<float> turned(tall.size());
  std::vector<float> wide(static_cast<std::size_t>(to_.y * to_.x));
  for (std::int64_t z = first; z < first + count; ++z) {
    TakeRows(y_, in + z * from_.y * from_.x, from_.x, from_.x, rows);
    for (std::int64_t y = 0; y < to_.y; ++y) {
      SumTaps(y_, y, rows.data(), from_.x, tall.data() + y * from_.x);
    }
    Transpose(tall.data(), to_.y, from_.x, turned.data());
    TakeRows(x_, turned.data(), to_.y, to_.y, rows);
    for (std::int64_t x = 0; x < to_.x; ++x) {
      SumTaps(x_, x, rows.data(), to_.y, wide.data() + x * to_.y);
    }
    Transpose(wide.data(), to_.x, to_.y, planes + z * to_.y * to_.x);
  }
}

void Resample::Rows(const float* planes, std::int64_t first, std::int64_t count, float* out) const {
  std::vector<float> rows;
  for (std::int64_t y = first; y < first + count; ++y) {
    TakeRows(z_, planes + y * to_.x, to_.y * to_.x, to_.x, rows);
    for (std::int64_t z = 0; z < to_.z; ++z) {
      SumTaps(z_, z, rows.data(), to_.x, out + (z * to_.y + y) * to_.x);
    }
  }
}

std::vector<CoarseTap> CoarseTaps(std::int64_t samples, std::int64_t coarse) {
  const Resample::Axis down = AxisOf(samples, coarse, 0), up = AxisOf(coarse, samples, 1);
  const auto sample_of = [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, coarse - 1));
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(down.first[i] - kMargin, 0, samples - 1));
  };
  std::vector<CoarseTap> taps;
  for (std::size_t i = 0; i < static_cast<std::size_t>(samples); ++i) {
    const std::int64_t at = up.first[i] - kMargin;
    taps.push_back({sample_of(at), sample_of(at + 1), up.weight[2 * i], up.weight[2 * i + 1]});
  }
  return taps;
}

}  // namespace patchbay::ops
