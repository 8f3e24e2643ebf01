// area_average: resamples an image by whole ratios of pixels. Every output pixel is the mean of the
// part of the source it covers, weighted by area; where it covers less than a pixel, it is
// interpolated between the nearest centres instead. uint8, uint16 and int16 are summed in integers
// and rounded once, to nearest, halves up; float32 in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

/// Along one axis, in units of 1 / `unit` of a source pixel: output pixel i covers
/// [begin + i * step, begin + (i + 1) * step).
struct AxisMap {
  std::int64_t begin = 0, step = 1, unit = 1;

  /// Whether output pixel i is source pixel i.
  bool IsIdentity() const { return begin == 0 && step == unit; }
  bool operator==(const AxisMap&) const = default;
};

/// The source pixels [begin, end) that `count` output pixels depend on.
struct AxisSpan {
  std::int64_t begin = 0, end = 0;
};
AxisSpan SpanOf(const AxisMap& map, std::int64_t count);

/// Resamples labels, which have no means: takes the source pixel under the centre of every output
/// pixel. Both are (height, width, 1) of uint8; InvalidArgument as for AreaAverage::Run.
Status TakeNearest(const ConstTensorView& source, const AxisMap& y, const AxisMap& x,
                   const TensorView& out);

/// For one thread; its buffers are as large as a row.
class AreaAverage {
 public:
  /// Both (height, width, channels) of one dtype, any strides. `y` and `x` count from the first row
  /// and column of `source`. InvalidArgument for other types, shapes, or maps that reach outside
  /// `source`.
  Status Run(const ConstTensorView& source, const AxisMap& y, const AxisMap& x,
             const TensorView& out);

 private:
  struct Tap {
    std::int64_t first = 0;  ///< source pixel
    std::size_t weight = 0;  ///< index of its first weight in `weights`
    std::int64_t count = 0;
  };
  struct Taps {
    std::vector<Tap> taps;
    std::vector<std::uint32_t> weights;
    std::uint64_t total = 1;  ///< sum of the weights of each tap
  };
  static Taps TapsOf(const AxisMap& map, std::int64_t count);

  template <typename Value>
  void RunAs(const ConstTensorView& source, const TensorView& out);
  template <typename Value, typename RowSum>
  void SumRow(const ConstTensorView& source, std::int64_t row, std::vector<RowSum>& sums) const;

  Taps y_, x_;
};

}  // namespace patchbay::ops
