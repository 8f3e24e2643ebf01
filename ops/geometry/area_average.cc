#include "ops/geometry/area_average.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxStep = std::int64_t{1} << 20;

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// The types that sums of rows and of whole areas are kept in. Integer sums are exact: a weight is
/// below 2^21.
template <typename Value>
struct SumsOf {
  using Row = std::uint64_t;
  using All = std::uint64_t;
};
template <>
struct SumsOf<std::uint8_t> {
  using Row = std::uint32_t;
  using All = std::uint64_t;
};
template <>
struct SumsOf<float> {
  using Row = double;
  using All = double;
};

/// Signed values are summed from their least one on.
template <typename Value>
constexpr std::int64_t kOffset = std::is_same_v<Value, std::int16_t> ? 32'768 : 0;

template <typename Value>
Value Load(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Divides by `total` and rounds to nearest, halves up: multiplies by a reciprocal, then corrects a
/// quotient that is one off.
struct Divider {
  explicit Divider(std::uint64_t total)
      : total_(total), reciprocal_(1.0 / static_cast<double>(total)) {}

  std::uint64_t operator()(std::uint64_t sum) const {
    const std::uint64_t n = sum + total_ / 2;
    auto q = static_cast<std::uint64_t>(static_cast<double>(n) * reciprocal_);
    while (q * total_ > n) --q;
    while ((q + 1) * total_ <= n) ++q;
    return q;
  }

  std::uint64_t total_;
  double reciprocal_;
};

Status Refuse(std::string_view cause) { return InvalidArgument("area average: ", cause); }

Status CheckMap(const AxisMap& map, std::int64_t outputs, std::int64_t inputs) {
  if (map.step < 1 || map.unit < 1 || map.step > kMaxStep || map.unit > kMaxStep) {
    return Refuse(StrCat("a step of ", map.step, "/", map.unit));
  }
  const AxisSpan span = SpanOf(map, outputs);
  if (span.begin >= 0 && span.end <= inputs) return absl::OkStatus();
  return Refuse(StrCat("pixels ", span.begin, " to ", span.end, " of ", inputs));
}

}  // namespace

AxisSpan SpanOf(const AxisMap& map, std::int64_t count) {
  if (map.step >= map.unit) {
    return {FloorDiv(map.begin, map.unit), -FloorDiv(-(map.begin + count * map.step), map.unit)};
  }
  // Twice the distance from the first source centre: the centres are at odd halves.
  const std::int64_t first = 2 * map.begin + map.step - map.unit;
  const std::int64_t last = first + 2 * (count - 1) * map.step;
  return {FloorDiv(first, 2 * map.unit), FloorDiv(last, 2 * map.unit) + 2};
}

Status TakeNearest(const ConstTensorView& source, const AxisMap& y, const AxisMap& x,
                   const TensorView& out) {
  if (source.rank != 3 || out.rank != 3 || source.dtype != DType::kUint8 ||
      out.dtype != DType::kUint8 || source.shape[2] != 1 || out.shape[2] != 1) {
    return Refuse("source and result must be (height, width, 1) of uint8");
  }
  PB_RETURN_IF_ERROR(CheckMap(y, out.shape[0], source.shape[0]));
  PB_RETURN_IF_ERROR(CheckMap(x, out.shape[1], source.shape[1]));
  const auto under = [](const AxisMap& map, std::int64_t i) {
    return FloorDiv(2 * map.begin + (2 * i + 1) * map.step, 2 * map.unit);
  };
  for (std::int64_t i = 0; i < out.shape[0]; ++i) {
    const std::byte* const row = source.data + under(y, i) * source.stride_bytes[0];
    for (std::int64_t j = 0; j < out.shape[1]; ++j) {
      out.data[i * out.stride_bytes[0] + j * out.stride_bytes[1]] =
          row[under(x, j) * source.stride_bytes[1]];
    }
  }
  return absl::OkStatus();
}

AreaAverage::Taps AreaAverage::TapsOf(const AxisMap& asked, std::int64_t count) {
  Taps taps;
  AxisMap map = asked;
  const std::int64_t common = std::gcd(std::gcd(map.begin, map.step), map.unit);
  map = {map.begin / common, map.step / common, map.unit / common};
  const bool averages = map.step >= map.unit;
  taps.total = static_cast<std::uint64_t>(averages ? map.step : 2 * map.unit);
  for (std::int64_t i = 0; i < count; ++i) {
    Tap tap{.weight = taps.weights.size()};
    if (averages) {
      const std::int64_t begin = map.begin + i * map.step, end = begin + map.step;
      tap.first = FloorDiv(begin, map.unit);
      for (std::int64_t at = tap.first; at * map.unit < end; ++at) {
        const std::int64_t part =
            std::min(end, (at + 1) * map.unit) - std::max(begin, at * map.unit);
        taps.weights.push_back(static_cast<std::uint32_t>(part));
      }
    } else {
      const std::int64_t place = 2 * map.begin + (2 * i + 1) * map.step - map.unit;
      tap.first = FloorDiv(place, 2 * map.unit);
      const std::int64_t beyond = place - tap.first * 2 * map.unit;
      taps.weights.push_back(static_cast<std::uint32_t>(2 * map.unit - beyond));
      taps.weights.push_back(static_cast<std::uint32_t>(beyond));
    }
    tap.count = static_cast<std::int64_t>(taps.weights.size() - tap.weight);
    taps.taps.push_back(tap);
  }
  return taps;
}

template <typename Value, typename RowSum>
void AreaAverage::SumRow(const ConstTensorView& source, std::int64_t row,
                         std::vector<RowSum>& sums) const {
  const std::byte* const line = source.data + row * source.stride_bytes[0];
  const auto channels = static_cast<std::size_t>(source.shape[2]);
  std::fill(sums.begin(), sums.end(), RowSum{0});
  RowSum* out = sums.data();
  for (const Tap& tap : x_.taps) {
    for (std::int64_t k = 0; k < tap.count; ++k) {
      const std::byte* pixel = line + (tap.first + k) * source.stride_bytes[1];
      const auto weight = static_cast<RowSum>(x_.weights[tap.weight + static_cast<std::size_t>(k)]);
      for (std::size_t c = 0; c < channels; ++c) {
        const auto value =
            Load<Value>(pixel + static_cast<std::int64_t>(c) * source.stride_bytes[2]);
        if constexpr (std::is_same_v<Value, float>) {
          out[c] += weight * static_cast<RowSum>(value);
        } else {
          out[c] += weight * static_cast<RowSum>(value + kOffset<Value>);
        }
      }
    }
    out += channels;
  }
}

template <typename Value>
void AreaAverage::RunAs(const ConstTensorView& source, const TensorView& out) {
  using RowSum = typename SumsOf<Value>::Row;
  using Sum = typename SumsOf<Value>::All;
  const auto width = static_cast<std::size_t>(out.shape[1] * out.shape[2]);
  std::vector<RowSum> row(width);
  std::vector<Sum> sums(width);
  const Divider divide(x_.total * y_.total);
  std::int64_t summed = -1;
  for (std::size_t i = 0; i < y_.taps.size(); ++i) {
    const Tap& tap = y_.taps[i];
    std::fill(sums.begin(), sums.end(), Sum{0});
    for (std::int64_t k = 0; k < tap.count; ++k) {
      // The last row of one output pixel is often the first of the next.
      if (summed != tap.first + k) SumRow<Value>(source, tap.first + k, row);
      summed = tap.first + k;
      const auto weight = static_cast<Sum>(y_.weights[tap.weight + static_cast<std::size_t>(k)]);
      for (std::size_t at = 0; at < width; ++at) sums[at] += weight * static_cast<Sum>(row[at]);
    }
    std::byte* const line = out.data + static_cast<std::int64_t>(i) * out.stride_bytes[0];
    const auto channels = static_cast<std::size_t>(out.shape[2]);
    for (std::size_t at = 0; at < width; ++at) {
      Value value;
      if constexpr (std::is_same_v<Value, float>) {
        value = static_cast<float>(sums[at] / static_cast<double>(divide.total_));
      } else {
        value = static_cast<Value>(static_cast<std::int64_t>(divide(sums[at])) - kOffset<Value>);
      }
      std::memcpy(line + static_cast<std::int64_t>(at / channels) * out.stride_bytes[1] +
                      static_cast<std::int64_t>(at % channels) * out.stride_bytes[2],
                  &value, sizeof(value));
    }
  }
}

Status AreaAverage::Run(const ConstTensorView& source, const AxisMap& y, const AxisMap& x,
                        const TensorView& out) {
  if (source.rank != 3 || out.rank != 3 || source.dtype != out.dtype ||
      source.shape[2] != out.shape[2]) {
    return Refuse(
        "source and result must be images with the same element type and number of channels");
  }
  PB_RETURN_IF_ERROR(CheckMap(y, out.shape[0], source.shape[0]));
  PB_RETURN_IF_ERROR(CheckMap(x, out.shape[1], source.shape[1]));
  y_ = TapsOf(y, out.shape[0]);
  x_ = TapsOf(x, out.shape[1]);
  switch (source.dtype) {
    case DType::kUint8:
      RunAs<std::uint8_t>(source, out);
      return absl::OkStatus();
    case DType::kUint16:
      RunAs<std::uint16_t>(source, out);
      return absl::OkStatus();
    case DType::kInt16:
      RunAs<std::int16_t>(source, out);
      return absl::OkStatus();
    case DType::kFloat32:
      RunAs<float>(source, out);
      return absl::OkStatus();
    default:
      return Refuse(StrCat("of ", NameOf(source.dtype)));
  }
}

}  // namespace patchbay::ops
