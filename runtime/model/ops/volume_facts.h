// Facts of an image that the ops of volumes need in addition to its voxels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/extent.h"

namespace patchbay::plan {

/// One value per axis.
struct PerAxis {
  double z = 1, y = 1, x = 1;

  bool operator==(const PerAxis&) const = default;
};

inline constexpr int kNoAxis = -1;

/// Mean and deviation of the values of a channel, or the numbers that stand in their place.
struct ChannelNumbers {
  double mean = 0, std = 1;

  bool operator==(const ChannelNumbers&) const = default;
};

struct VolumeFacts {
  /// Millimetres from one voxel of a finished patch to the next, as it would be without
  /// augmentation.
  PerAxis spacing;
  /// Voxels of the level that is read for one of the finished patch; above 1: the patch is coarser.
  PerAxis step;
  /// Mean and deviation of the windowed values over the body of the image; set under zscore. The
  /// first channel's, where the image has several.
  double mean = 0, std = 1;
  std::vector<ChannelNumbers> further = {};  ///< numbers of the second channel and the next ones
  /// Axis (0 = z) along which patches are resampled to the nearest voxel, under patch.resample;
  /// kNoAxis: none.
  int nearest_axis = kNoAxis;

  ChannelNumbers NumbersOf(int channel) const {
    const auto after_first = static_cast<std::size_t>(channel) - 1;
    if (channel == 0) return {mean, std};
    return after_first < further.size() ? further[after_first] : ChannelNumbers{};
  }
  bool operator==(const VolumeFacts&) const = default;
};

/// Voxels of the level that `side` voxels of a patch cover.
inline std::int64_t SourceSide(std::int64_t side, double step) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * step));
}
inline Extent SourceSides(const Extent& patch, const PerAxis& step) {
  return {SourceSide(patch.z, step.z), SourceSide(patch.y, step.y), SourceSide(patch.x, step.x)};
}

}  // namespace patchbay::plan
