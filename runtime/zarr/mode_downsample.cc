#include "runtime/zarr/mode_downsample.h"

#include <array>

namespace patchbay::zarr {
namespace {

std::uint8_t ModeOfFour(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  if (a == b && c == d) return std::min(a, c);
  if (a == b || a == c || a == d) {
    // a is there twice: it ties only with the two others where those are equal.
    const std::uint8_t other = a == b ? c : b;
    const bool is_tie = a == b ? c == d : (a == c ? b == d : b == c);
    return is_tie ? std::min(a, other) : a;
  }
  if (b == c || b == d) return b;
  if (c == d) return c;
  return std::min(std::min(a, b), std::min(c, d));
}

std::uint8_t ModeOf(const FinePixels& fine, const Box& part) {
  std::array<std::uint32_t, 256> counts{};
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    const std::uint8_t* row = fine.data + (y - fine.box.y) * fine.box.width - fine.box.x;
    for (std::int64_t x = part.x; x < part.x + part.width; ++x) ++counts[row[x]];
  }
  return static_cast<std::uint8_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

bool IsOne(const FinePixels& fine, const Box& part) {
  const std::uint8_t first =
      fine.data[(part.y - fine.box.y) * fine.box.width + part.x - fine.box.x];
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    const std::uint8_t* row = fine.data + (y - fine.box.y) * fine.box.width - fine.box.x;
    for (std::int64_t x = part.x; x < part.x + part.width; ++x) {
      if (row[x] != first) return false;
    }
  }
  return true;
}

}  // namespace

void DownsampleByMode(const FinePixels& fine, const Footprints& footprints,
                      const CoarsePixels& coarse) {
  for (std::int64_t y = 0; y < coarse.box.height; ++y) {
    std::uint8_t* out = coarse.data + y * coarse.row_bytes;
    const std::int64_t top = footprints.y.Begin(coarse.box.y + y);
    const std::int64_t bottom = footprints.y.End(coarse.box.y + y);
    for (std::int64_t x = 0; x < coarse.box.width; ++x) {
      const std::int64_t left = footprints.x.Begin(coarse.box.x + x);
      const std::int64_t right = footprints.x.End(coarse.box.x + x);
      const std::uint8_t* at = fine.data + (top - fine.box.y) * fine.box.width + left - fine.box.x;
      if (bottom - top == 2 && right - left == 2) {
        out[x] = ModeOfFour(at[0], at[1], at[fine.box.width], at[fine.box.width + 1]);
        continue;
      }
      const Box part = Box2D(top, left, bottom - top, right - left);
      out[x] = IsOne(fine, part) ? *at : ModeOf(fine, part);
    }
  }
}

}  // namespace patchbay::zarr
