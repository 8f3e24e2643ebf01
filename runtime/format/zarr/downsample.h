// Building pyramid levels: factor 2, area average, half rounds up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "runtime/core/box.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::zarr {

/// out(z, y, x, c) = the mean of in(2z..2z+1, 2y..2y+1, 2x..2x+1, c); where the input ends on an
/// odd slice, row or column, of the existing pixels. Integers are rounded to nearest, halves up; a
/// float32 mean is computed in double and rounded once. Both views are (depth, height, width,
/// channels), uint8, uint16, int16 or float32, channels interleaved (stride of axis 3 is the
/// element, of axis 2 the pixel); rows and slices may have any stride. `out` must be ceil(in / 2)
/// on every axis, so a 2-D image stays one. Pure, so a shard can be built piecewise from even
/// offsets with the same result as at once.
Status DownsampleByTwo(const ConstTensorView& in, const TensorView& out);

/// The downsampling along one axis: the stated one if the shapes agree with it. An average of two
/// has exactly twice its parent's pixel size, although its shape is rounded up.
inline double DownsampleAlong(std::int64_t finest, std::int64_t side, double stated) {
  const double ratio = static_cast<double>(finest) / static_cast<double>(side);
  return std::abs(static_cast<double>(finest) / stated - static_cast<double>(side)) < 1.0 ? stated
                                                                                          : ratio;
}

/// A chunk of a label image in memory: one value, or pixels where `pixels` is not null.
struct LabelCell {
  std::uint8_t value = 0;
  std::unique_ptr<std::uint8_t[]> pixels;
};

/// The pixels of the finer level that a pixel of the coarser one covers along one axis. Where one
/// is the other divided by a whole number, give or take a pixel of rounding, those are blocks of
/// that number; else from floor(i * fine / coarse) to floor((i + 1) * fine / coarse), at least one.
class Footprint {
 public:
  Footprint(std::int64_t fine, std::int64_t coarse) : fine_(fine), coarse_(coarse) {
    const std::int64_t factor = (fine + coarse / 2) / coarse;
    const std::int64_t rest = fine - coarse * factor;
    if (rest > -factor && rest <= factor) factor_ = factor;
  }
  /// The whole number that the level is divided by, or 0.
  std::int64_t factor() const { return factor_; }
  std::int64_t Begin(std::int64_t i) const {
    return factor_ > 0 ? i * factor_ : i * fine_ / coarse_;
  }
  std::int64_t End(std::int64_t i) const {
    return std::min(fine_, std::max(Begin(i) + 1, Begin(i + 1)));
  }

 private:
  std::int64_t fine_, coarse_, factor_ = 0;
};

/// Pixels of the finer level, and where they lie in it.
struct FinePixels {
  const std::uint8_t* data = nullptr;
  Box box;
  std::int64_t row_bytes = 0;  ///< 0: the rows lie one after another
};
/// The pixels of the finer level that each of the coarser one covers, axis by axis.
struct Footprints {
  Footprint y, x;
};
/// Pixels of the coarser level, and where they lie in it.
struct CoarsePixels {
  std::uint8_t* data = nullptr;
  Box box;
  std::int64_t row_bytes = 0;
};

/// Fills `coarse`. `fine` holds everything that its pixels cover. The smallest of several values
/// that are equally common wins.
void DownsampleByMode(const FinePixels& fine, const Footprints& footprints,
                      const CoarsePixels& coarse);

/// The same for a volume: `out` is ceil(in / 2) on every axis, a voxel the commonest of the up to
/// eight below it. Both are (depth, height, width, 1) of uint8, any strides between rows and
/// slices. Pure, so that it may be cut at even offsets.
Status HalveLabels(const ConstTensorView& in, const TensorView& out);

}  // namespace patchbay::zarr
