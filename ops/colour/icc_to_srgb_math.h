// icc_to_srgb: the formula. Of a cell's eight corners a pixel's tetrahedron has four: the lowest,
// the highest, and two on the way from one to the other, first along the axis with the largest
// part. Products are rounded before they are added: `Product` of two floats says how.
#pragma once

#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// sRGB levels of one node. A GPU reads all of it at once.
struct alignas(16) IccNode {
  float rgb[3] = {0, 0, 0};
  float unused = 0;
};

/// Where a pixel lies among the nodes.
struct IccPlace {
  int corner[4];    ///< nodes of its tetrahedron
  float weight[4];  ///< of each
};

PB_LANE_CODE float WithinLevels(float value) {
  return value > 0 ? (value < 255 ? value : 255.0f) : 0.0f;
}

template <typename Product>
PB_LANE_CODE IccPlace IccPlaceOf(int grid, const Product& product, const float (&rgb)[3]) {
  const int step[3] = {grid * grid, grid, 1};
  const float scale = static_cast<float>(grid - 1) / 255.0f;
  float part[3];
  int lowest = 0;
  for (int c = 0; c < 3; ++c) {
    const float at = product(WithinLevels(rgb[c]), scale);
    int cell = static_cast<int>(at);
    if (cell > grid - 2) cell = grid - 2;
    part[c] = at - static_cast<float>(cell);
    lowest += cell * step[c];
  }
  const bool red_green = part[0] >= part[1], green_blue = part[1] >= part[2],
             red_blue = part[0] >= part[2];
  const int first = red_green && red_blue ? 0 : (!red_green && green_blue ? 1 : 2);
  const int last = red_blue && green_blue ? 2 : (red_green && !green_blue ? 1 : 0);
  const int middle = 3 - first - last;
  const int second = lowest + step[first], third = second + step[middle];
  return {{lowest, second, third, third + step[last]},
          {1.0f - part[first], part[first] - part[middle], part[middle] - part[last], part[last]}};
}

/// `rgb` of device levels 0 to 255 in place. `grid` nodes along each axis, blue fastest.
template <typename Product>
PB_LANE_CODE void DeviceToSrgb(const IccNode* nodes, int grid, const Product& product,
                               float (&rgb)[3]) {
  const IccPlace place = IccPlaceOf(grid, product, rgb);
  float sum[3] = {0, 0, 0};
  for (int k = 0; k < 4; ++k) {
    const IccNode node = nodes[place.corner[k]];
    for (int c = 0; c < 3; ++c) {
      const float term = product(place.weight[k], node.rgb[c]);
      sum[c] = k == 0 ? term : sum[c] + term;
    }
  }
  for (int c = 0; c < 3; ++c) rgb[c] = WithinLevels(sum[c]);
}

}  // namespace patchbay::ops
