// Spectral at work: pixels of a block in, sums out. A part of spectral; the GPU's is in
// spectral_device.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ops/spectral/spectral_sums.h"
#include "runtime/model/ops/spectral_options.h"

namespace patchbay::ops {

/// One channel of a rectangle of the image, as it lies in memory; the caller keeps it alive.
struct SpectralPlane {
  const std::uint8_t* pixels = nullptr;  ///< address of image pixel (top, left)
  std::int64_t row_bytes = 0;            ///< from one row to the next
  std::int64_t top = 0, left = 0;        ///< corner of the rectangle, in image pixels
  std::int64_t height = 0, width = 0;    ///< size of the rectangle
  std::int64_t image_height = 0, image_width = 0;
};

/// Frames [row_begin, row_end) x [column_begin, column_end), counted in hops from the image's top
/// left.
struct FrameRange {
  std::int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
};

/// The widest vectors that may be used; vectors that the machine lacks are never used.
enum class SpectralLevel : std::uint8_t { kPlain, kAvx2, kBest };

/// Counts frames into sums. Holds plans and scratch memory (under 4 MiB): one for each thread. A
/// frame gives the same bits at any place in any block and with any vector width.
class SpectralFrames {
 public:
  static StatusOr<std::unique_ptr<SpectralFrames>> Create(
      const plan::SpectralOptions& options, SpectralLevel level = SpectralLevel::kBest);
  virtual ~SpectralFrames() = default;

  /// Adds every frame of `frames` whose byte in `wanted` (row-major over the range) is not 0; an
  /// empty `wanted` means all. InvalidArgument when the plane does not hold every pixel that the
  /// frames need: theirs, and plan::SpectralHalo pixels around them as far as the image reaches; or
  /// when `sums` is of other options. ResourceExhausted when `sums` would count too many frames.
  /// `sums` is unchanged then.
  virtual Status Add(const SpectralPlane& plane, const FrameRange& frames,
                     std::span<const std::uint8_t> wanted, SpectralSums& sums) = 0;

  /// The same from interleaved RGB: `rgb.pixels` are triples, `rgb.row_bytes` counts bytes. `sums`
  /// holds plan::SpectralChannels() of them: grey, or red, green and blue.
  virtual Status AddRgb(const SpectralPlane& rgb, const FrameRange& frames,
                        std::span<const std::uint8_t> wanted, std::span<SpectralSums> sums);

  /// Waits until all frames added are in their sums. A GPU counts later than Add returns: until
  /// Finish, sums that were given must stay where they are and may lack frames. Pixels may go as
  /// soon as Add returns. After an error, sums are to be thrown away.
  virtual Status Finish() { return absl::OkStatus(); }
};

/// Interleaved RGB to grey (see plan::SpectralChannel::kGrey); `pixels` of them.
void GreyOfRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey);
/// Interleaved RGB to three planes.
void SplitRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
              std::uint8_t* blue);

}  // namespace patchbay::ops
