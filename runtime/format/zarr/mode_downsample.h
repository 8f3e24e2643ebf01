// The next level of a label image: never an average, always the commonest value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "runtime/core/box.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::zarr {

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
struct Footprints {
  Footprint y, x;
};
/// Pixels of the coarser level, and where they lie in it.
struct CoarsePixels {
  std::uint8_t* data = nullptr;
  Box box;
  std::int64_t row_bytes = 0;
};

/// Fills `coarse`. `fine` holds everything that its pixels cover. Of several values that are
/// equally common the smallest wins.
void DownsampleByMode(const FinePixels& fine, const Footprints& footprints,
                      const CoarsePixels& coarse);

/// The same for a volume: `out` is ceil(in / 2) on every axis, a voxel the commonest of the up to
/// eight below it. Both are (depth, height, width, 1) of uint8, any strides between rows and
/// slices. Pure, so that it may be cut at even offsets.
Status HalveLabels(const ConstTensorView& in, const TensorView& out);

}  // namespace patchbay::zarr
