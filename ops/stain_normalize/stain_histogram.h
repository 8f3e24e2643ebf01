// How many pixels of an image have each colour: all that stain fits need, and whole numbers that
// merge without loss, so that a fit does not depend on tiles, their order or who counted them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

/// Bits kept of each channel in the histogram of a slide: 2^21 colours. Against a fit of 8 bits, a
/// fit of 7 moves a normalised pixel by at most one grey level.
inline constexpr int kSlideColourBits = 7;
inline constexpr int kMaxColourBits = 8;

/// The colours that occur.
struct StainHistogram {
  struct Entry {
    std::uint32_t colour = 0;  ///< the leading bits of red, green and blue, red first
    std::uint64_t pixels = 0;  ///< above 0
    bool operator==(const Entry&) const = default;
  };
  int bits = kSlideColourBits;  ///< bits of each channel, 1 to kMaxColourBits
  std::vector<Entry> entries;   ///< by rising colour

  /// The intensity, 0 to 255, that represents `code`: the middle of the intensities with this code.
  double IntensityOf(std::uint32_t code) const {
    const double width = 1 << (8 - bits);
    return code * width + (width - 1) / 2;
  }
  std::uint64_t Pixels() const;
  bool operator==(const StainHistogram&) const = default;
};

/// Counts colours. 8 MiB for 7 bits. Not thread-safe; move-only.
class StainCounter {
 public:
  explicit StainCounter(int bits = kSlideColourBits);

  /// `pixels`: (..., width, 3) of uint8, rank 3 or 4, channels adjacent and pixels without gaps.
  /// InvalidArgument for anything else.
  Status Add(const ConstTensorView& pixels);
  /// InvalidArgument unless of the same bits.
  Status Add(const StainHistogram& other);
  StainHistogram Take();

 private:
  void Fold();

  const int bits_;
  std::unique_ptr<std::uint32_t[]> counts_;  ///< by colour; null until needed
  std::uint64_t counted_ = 0;                ///< pixels in counts_
  std::vector<std::uint64_t> folded_;        ///< by colour; empty until needed
};

/// A histogram as the bytes of a file; the caller adds a checksum.
std::vector<std::byte> SerialiseHistogram(const StainHistogram& histogram);
/// DataLoss unless `bytes` are the output of SerialiseHistogram.
StatusOr<StainHistogram> ParseHistogram(std::string_view bytes);

}  // namespace patchbay::ops
