// icc_to_srgb: the formula. A pixel's tetrahedron has four of its cell's eight corners: the lowest,
// the highest, and two on the way from one to the other, first along the axis with the largest
// part. Products are rounded before they are added, by `Product` of two floats.
#pragma once

#include <cstdint>

#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// sRGB levels of one node: red, green, blue and one that is not used, for aligned loads.
struct alignas(16) IccNode {
  float level[4] = {0, 0, 0, 0};
};

/// Where a pixel lies among the nodes.
struct IccPlace {
  int corner[4];    ///< nodes of its tetrahedron
  float weight[4];  ///< weight of each node
};

PB_LANE_CODE float Smaller(float a, float b) { return a < b ? a : b; }
PB_LANE_CODE float Larger(float a, float b) { return a > b ? a : b; }
PB_LANE_CODE float WithinLevels(float value) { return Smaller(Larger(value, 0.0f), 255.0f); }

/// The tetrahedron of parts of red, green and blue in the cell from node `lowest` on. No branches:
/// which part is the largest changes from pixel to pixel.
PB_LANE_CODE IccPlace TetrahedronOf(int grid, int lowest, float r, float g, float b) {
  const int red = grid * grid, green = grid, blue = 1;
  const int red_green = r >= g, green_blue = g >= b, red_blue = r >= b;
  const int red_first = red_green & red_blue, green_first = (1 - red_green) & green_blue;
  const int blue_last = green_blue & red_blue, green_last = red_green & (1 - green_blue);
  const int first = red_first * red + green_first * green + (1 - red_first - green_first) * blue;
  const int last = (1 - blue_last - green_last) * red + green_last * green + blue_last * blue;
  const int highest = lowest + red + green + blue;
  const float most = Larger(Larger(r, g), b), least = Smaller(Smaller(r, g), b);
  const float middle = Larger(Smaller(r, g), Smaller(Larger(r, g), b));
  return {{lowest, lowest + first, highest - last, highest},
          {1.0f - most, most - middle, middle - least, least}};
}

template <typename Product>
PB_LANE_CODE IccPlace IccPlaceOf(int grid, const Product& product, const float (&rgb)[3]) {
  const float scale = static_cast<float>(grid - 1) / 255.0f;
  float part[3];
  int lowest = 0;
  for (int c = 0; c < 3; ++c) {
    const float at = product(WithinLevels(rgb[c]), scale);
    const int whole = static_cast<int>(at), cell = whole < grid - 2 ? whole : grid - 2;
    part[c] = at - static_cast<float>(cell);
    lowest = lowest * grid + cell;
  }
  return TetrahedronOf(grid, lowest, part[0], part[1], part[2]);
}

/// `rgb` of device levels 0 to 255 in place. `grid` nodes along each axis, blue fastest.
template <typename Product>
PB_LANE_CODE void DeviceToSrgb(const IccNode* nodes, int grid, const Product& product,
                               float (&rgb)[3]) {
  const IccPlace at = IccPlaceOf(grid, product, rgb);
  const IccNode low = nodes[at.corner[0]], second = nodes[at.corner[1]],
                third = nodes[at.corner[2]], high = nodes[at.corner[3]];
  for (int c = 0; c < 3; ++c) {
    const float terms[4] = {
        product(at.weight[0], low.level[c]), product(at.weight[1], second.level[c]),
        product(at.weight[2], third.level[c]), product(at.weight[3], high.level[c])};
    rgb[c] = WithinLevels(((terms[0] + terms[1]) + terms[2]) + terms[3]);
  }
}

class IccLookup;

struct IccStep {
  static constexpr StepForm kForm = StepForm::kPixels;
  const IccLookup* lookup = nullptr;
  KeptValues<IccNode> kept;  ///< the lookup's nodes
  int grid = 2;
};

/// `V` holds one value.
template <typename V>
PB_LANE_CODE void Apply(const IccStep& step, V (&rgb)[3]) {
  float level[3] = {rgb[0].v, rgb[1].v, rgb[2].v};
  const auto product = [](float a, float b) { return (V{a} * V{b}).v; };
  DeviceToSrgb(step.kept.at, step.grid, product, level);
  for (int c = 0; c < 3; ++c) rgb[c] = {level[c]};
}
/// A row of `width` pixels.
void ApplyToPixels(const IccStep& step, float* red, float* green, float* blue, std::int64_t width);

}  // namespace patchbay::ops
