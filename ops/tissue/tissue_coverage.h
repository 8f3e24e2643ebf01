// How much of a frame is tissue, from a mask: sums of any box in constant time, exact. A part of
// tissue_mask.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "ops/tissue/tissue_mask.h"
#include "runtime/core/status.h"

namespace patchbay::ops {

/// A pixel of the mask stands for at most this many pixels of the image along a side.
inline constexpr std::int64_t kMaxMaskScale = 1 << 16;
/// A frame's side is at most this.
inline constexpr std::int64_t kMaxCoverageFrame = 1 << 20;

/// A mask laid over an image: the corners of both coincide, whatever their sizes. A value; may be
/// shared between threads.
///
/// Pixel edge x of an image W pixels wide lies at floor(x * w * 2^16 / W) / 2^16 of a mask w pixels
/// wide: one function of x, so that frames that share an edge in the image share it in the mask.
/// Pixels of the mask that a box only partly covers count by their covered area; everything is an
/// integer in units of 2^-32 pixels.
class TissueCoverage {
 public:
  /// `mask` is of the whole image; height and width, in pixels, are those of the level that the
  /// frames are of. InvalidArgument when the mask's size and pixels differ, it is larger than the
  /// image, or more than kMaxMaskScale times smaller.
  static StatusOr<TissueCoverage> Create(const TissueMask& mask, std::int64_t image_height,
                                         std::int64_t image_width);

  /// Tissue in the box, and all of the box, in 2^-32 pixels of the mask.
  struct Area {
    std::uint64_t tissue = 0, all = 0;
  };
  /// The area of image pixels [top, bottom) x [left, right), which must lie in the image.
  Area Of(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) const;

  /// A byte per frame, row-major over `frames`, as SpectralFrames::Add takes it: 1 where at least
  /// `min_fraction` (rounded to 2^-16) of the frame is tissue. Frame (i, j) is the square of
  /// `frame` pixels at (i, j) * hop. InvalidArgument for a fraction outside 0 to 1, a frame or hop
  /// that is not positive, and frames outside the image.
  StatusOr<std::vector<std::uint8_t>> Wanted(const FrameRange& frames, std::int64_t frame,
                                             std::int64_t hop, double min_fraction) const;

 private:
  /// A place along one axis of the mask: whole pixels and a fraction in 2^-16.
  struct Edge {
    std::int64_t pixel = 0, fraction = 0;
  };
  static Edge EdgeOf(std::int64_t at, std::int64_t mask_side, std::int64_t image_side);
  /// Tissue in the mask above and left of the place, in 2^-32 pixels.
  std::uint64_t Before(const Edge& y, const Edge& x) const;
  std::uint64_t Sum(std::int64_t y, std::int64_t x) const;

  std::int64_t height_ = 0, width_ = 0;
  std::int64_t image_height_ = 0, image_width_ = 0;
  std::vector<std::uint32_t> sums_;  ///< (height + 1) x (width + 1): ones above and left
};

}  // namespace patchbay::ops
