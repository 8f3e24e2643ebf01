// The rows of pixels that a strip holds on to: one plane a channel, moved down band by band.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "workers/jobs/spectra/grid.h"

namespace patchbay::workers {

/// One owner, one thread.
class SpectraPlanes {
 public:
  explicit SpectraPlanes(const SpectraGrid& grid);

  /// From now on the pixels of `box` are held, whatever they are.
  void Hold(const Box& box);
  /// From now on rows [top, bottom) are held; those that were held before keep their pixels.
  void MoveTo(std::int64_t top, std::int64_t bottom);

  std::int64_t row_bytes() const { return width_; }
  /// Where pixel (y, x) of a channel lies; y and x are held.
  std::uint8_t* At(int channel, std::int64_t y, std::int64_t x);
  /// Everything that is held; valid until the next Hold or MoveTo.
  ops::SpectralPlane View(int channel);
  /// Copies all of `from`, whose area must lie within that of these planes.
  void Copy(SpectraPlanes& from);

 private:
  const SpectraGrid grid_;
  std::int64_t left_ = 0, width_ = 0;
  std::int64_t top_ = 0, bottom_ = 0;
  std::vector<std::vector<std::uint8_t>> planes_;  ///< by channel, rows without gaps
};

}  // namespace patchbay::workers
