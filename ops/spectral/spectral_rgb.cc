// Interleaved pixels for those that take planes.
#include <algorithm>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxSide = std::int64_t{1} << 31;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 34;

}  // namespace

Status SpectralFrames::AddRgb(const SpectralPlane& rgb, const FrameRange& frames,
                              std::span<const std::uint8_t> wanted, std::span<SpectralSums> sums) {
  if (sums.size() != 1 && sums.size() != 3) {
    return InvalidArgument("spectral: ", sums.size(), " sums for RGB: expected 1 for grey or 3");
  }
  if (rgb.pixels == nullptr || rgb.height < 1 || rgb.width < 1 || rgb.height > kMaxSide ||
      rgb.width > kMaxPixels / rgb.height || rgb.row_bytes < 3 * rgb.width) {
    return InvalidArgument("spectral: a block of ", rgb.height, " x ", rgb.width,
                           " pixels with rows of ", rgb.row_bytes, " bytes");
  }
  const auto pixels = static_cast<std::size_t>(rgb.height * rgb.width);
  std::vector<std::uint8_t> planes(pixels * sums.size());
  for (std::int64_t y = 0; y < rgb.height; ++y) {
    const std::uint8_t* row = rgb.pixels + y * rgb.row_bytes;
    std::uint8_t* out = planes.data() + y * rgb.width;
    if (sums.size() == 1) {
      GreyOfRgb(row, rgb.width, out);
    } else {
      SplitRgb(row, rgb.width, out, out + pixels, out + 2 * pixels);
    }
  }
  SpectralPlane plane = rgb;
  plane.row_bytes = rgb.width;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    plane.pixels = planes.data() + c * pixels;
    PB_RETURN_IF_ERROR(Add(plane, frames, wanted, sums[c]));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops
