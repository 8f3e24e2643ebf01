// A volume on another grid over the same place: nearest, linear, or by cubic B-splines.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/geometry/patch_maps.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"

namespace patchbay::ops {

/// Half-pixel centres: sample i of n' lies at (i + 0.5) n / n' - 0.5 of the n before; beyond the
/// ends the last sample is repeated. Equal to SciPy's map_coordinates with mode "nearest", and to
/// skimage.resize without anti-aliasing. Order 3 filters exactly for the spline through all
/// samples.
///
/// Pure and const; the two steps, all planes and then all rows, may be split over any number of
/// threads. The values do not depend on the split.
class Resample {
 public:
  /// InvalidArgument for an order other than 0, 1 and 3, and for empty extents.
  static StatusOr<Resample> Make(const Extent& from, const Extent& to, int order) {
    return Make(from, to, std::array{order, order, order});
  }
  /// Orders along z, y and x.
  static StatusOr<Resample> Make(const Extent& from, const Extent& to,
                                 const std::array<int, 3>& orders);

  /// Along x and y: slices [first, first + count) of `in` (from.z, from.y, from.x) into the same
  /// slices of `planes` (from.z, to.y, to.x).
  void Planes(const float* in, std::int64_t first, std::int64_t count, float* planes) const;

  /// Along z: rows [first, first + count) of every slice of `planes` into the same rows of `out`
  /// (to.z, to.y, to.x).
  void Rows(const float* planes, std::int64_t first, std::int64_t count, float* out) const;

  const Extent& from() const { return from_; }
  const Extent& to() const { return to_; }

  /// The taps of one axis. Sample i of the new axis is the weighted sum of `taps` samples of the
  /// old one from first[i] on; index 0 lies kMargin samples before the old axis begins.
  struct Axis {
    std::int64_t from = 0, to = 0;
    int taps = 1;
    bool is_spline = false;
    std::vector<std::int32_t> first;
    std::vector<float> weight;  ///< taps of each sample
  };

 private:
  Resample(const Extent& from, const Extent& to) : from_(from), to_(to) {}

  Extent from_, to_;
  Axis z_, y_, x_;
};

/// The taps of each of `samples` samples.
std::vector<CoarseTap> CoarseTaps(std::int64_t samples, std::int64_t coarse);

}  // namespace patchbay::ops
