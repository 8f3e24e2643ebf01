// The rows of pixels that a strip holds on to: one plane a channel, moved down band by band.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spectral_frames.h"
#include "workers/jobs/spectra_grid.h"

namespace patchbay::workers {

/// One owner, one thread. Columns stay, rows come and go.
class SpectraPlanes {
 public:
  /// Planes of the columns [left, left + width) of the image.
  SpectraPlanes(const SpectraGrid& grid, std::int64_t left, std::int64_t width);

  /// From now on rows [top, bottom) are held; those that were held before keep their pixels.
  void MoveTo(std::int64_t top, std::int64_t bottom);

  std::int64_t top() const { return top_; }
  std::int64_t row_bytes() const { return width_; }
  /// Where pixel (y, x) of a channel lies; y and x are held.
  std::uint8_t* At(int channel, std::int64_t y, std::int64_t x);
  /// Everything that is held; valid until the next MoveTo.
  ops::SpectralPlane View(int channel);

 private:
  const SpectraGrid grid_;
  const std::int64_t left_, width_;
  std::int64_t top_ = 0, bottom_ = 0;
  std::vector<std::vector<std::uint8_t>> planes_;  ///< by channel, rows without gaps
};

}  // namespace patchbay::workers
