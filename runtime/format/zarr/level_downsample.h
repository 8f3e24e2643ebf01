// How much coarser a level is than the finest.
#pragma once

#include <cmath>
#include <cstdint>

namespace patchbay::zarr {

/// Along one axis: what the metadata states, as long as the shapes bear it out: an average of two
/// has exactly twice its parent's pixel size, although its shape is rounded up.
inline double DownsampleAlong(std::int64_t finest, std::int64_t side, double stated) {
  const double ratio = static_cast<double>(finest) / static_cast<double>(side);
  return std::abs(static_cast<double>(finest) / stated - static_cast<double>(side)) < 1.0 ? stated
                                                                                          : ratio;
}

}  // namespace patchbay::zarr
