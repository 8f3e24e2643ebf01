// icc_to_srgb: rows of pixels on the CPU.
#define HWY_BASELINE_TARGETS HWY_AVX2
#define HWY_COMPILE_ONLY_STATIC
#include <algorithm>
#include <cstring>

#include <immintrin.h>

#include "hwy/highway.h"
#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

HWY_BEFORE_NAMESPACE();
#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "ops/lanes/wide_lanes.h"

namespace patchbay::ops {
namespace {

/// Pixels that the first loop places before the second loads their nodes: loads wait for no
/// arithmetic, and the places stay in the first-level cache.
constexpr std::int64_t kBlock = 64;
/// Floats of a node.
constexpr int kNodeFloats = sizeof(IccNode) / sizeof(float);

struct PlacedPixels {
  alignas(64) std::uint32_t node[3][kBlock];  ///< first floats of three corners
  alignas(64) float weight[4][kBlock];
};

void PlacePixels(int grid, float* const (&rgb)[3], std::int64_t width, PlacedPixels& placed) {
  for (std::int64_t j = 0; j < width; j += WideLanes::kLanes) {
    const WideLanes pixel[3] = {WideLanes::Load(rgb[0] + j), WideLanes::Load(rgb[1] + j),
                                WideLanes::Load(rgb[2] + j)};
    const auto at = IccPlaceOf(grid, pixel);
    for (int k = 0; k < 3; ++k) {
      WideLanes::Whole::Nearest(at.corner[k] * WideLanes::All(kNodeFloats))
          .Store(placed.node[k] + j);
    }
    for (int k = 0; k < 4; ++k) at.weight[k].Store(placed.weight[k] + j);
  }
}

/// Pixel j + kPixel in the lower half of the register, the pixel four further on in the upper.
template <int kPixel>
PB_LANE_CODE WideLanes TwoPixels(const float* nodes, int across, const PlacedPixels& placed,
                                 std::int64_t j) {
  const WideLanes::Tag all;
  const hn::Half<WideLanes::Tag> half;
  WideLanes weight[4], level[4];
  for (int k = 0; k < 4; ++k) {
    const float* const corner = k == 3 ? nodes + std::ptrdiff_t{across} * kNodeFloats : nodes;
    const std::uint32_t* const at = placed.node[k % 3] + j + kPixel;
    level[k] = {hn::Combine(all, hn::Load(half, corner + at[4]), hn::Load(half, corner + at[0]))};
    weight[k] = {hn::Broadcast<kPixel>(hn::Load(all, placed.weight[k] + j))};
  }
  return BetweenNodes(weight, level);
}

void ColourPixels(const IccStep& step, const PlacedPixels& placed, std::int64_t width,
                  float* const (&rgb)[3]) {
  const WideLanes::Tag all;
  const float* const nodes = step.kept.at->level;
  const int across = AcrossCell(step.grid);
  for (std::int64_t j = 0; j < width; j += WideLanes::kLanes) {
    const auto first = TwoPixels<0>(nodes, across, placed, j).v;
    const auto second = TwoPixels<1>(nodes, across, placed, j).v;
    const auto third = TwoPixels<2>(nodes, across, placed, j).v;
    const auto fourth = TwoPixels<3>(nodes, across, placed, j).v;
    const auto odd = hn::InterleaveLower(all, first, third),
               even = hn::InterleaveLower(all, second, fourth);
    hn::StoreU(hn::InterleaveLower(all, odd, even), all, rgb[0] + j);
    hn::StoreU(hn::InterleaveUpper(all, odd, even), all, rgb[1] + j);
    hn::StoreU(hn::InterleaveLower(all, hn::InterleaveUpper(all, first, third),
                                   hn::InterleaveUpper(all, second, fourth)),
               all, rgb[2] + j);
  }
}

void ApplyToBlock(const IccStep& step, float* const (&rgb)[3], std::int64_t width) {
  PlacedPixels placed;
  PlacePixels(step.grid, rgb, width, placed);
  ColourPixels(step, placed, width, rgb);
}

}  // namespace

void ApplyToPixels(const IccStep& step, float* red, float* green, float* blue, std::int64_t width) {
  const std::int64_t whole = width - width % WideLanes::kLanes;
  for (std::int64_t j = 0; j < whole; j += kBlock) {
    ApplyToBlock(step, {red + j, green + j, blue + j}, std::min(kBlock, whole - j));
  }
  if (whole == width) return;
  float rest[3][WideLanes::kLanes] = {};
  float* const from[3] = {red + whole, green + whole, blue + whole};
  const auto bytes = static_cast<std::size_t>(width - whole) * sizeof(float);
  for (int c = 0; c < 3; ++c) std::memcpy(rest[c], from[c], bytes);
  ApplyToBlock(step, {rest[0], rest[1], rest[2]}, WideLanes::kLanes);
  for (int c = 0; c < 3; ++c) std::memcpy(from[c], rest[c], bytes);
}

}  // namespace patchbay::ops
HWY_AFTER_NAMESPACE();
