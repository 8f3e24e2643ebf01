// icc_to_srgb: the formula. Of a cell's eight corners a pixel's tetrahedron has four: the lowest,
// the highest, and two on the way from one to the other, first along the axis with the largest
// part. Products and sums are separate on purpose: nothing may fuse them.
#pragma once

#include <cmath>

namespace patchbay::ops {

/// `rgb` of device levels 0 to 255 in place. `nodes` of 4 floats, `grid` along each axis, blue
/// fastest.
inline void DeviceToSrgb(const float* nodes, int grid, float (&rgb)[3]) {
  const int step[3] = {4 * grid * grid, 4 * grid, 4};
  const float scale = static_cast<float>(grid - 1) / 255.0f;
  float part[3];
  int lowest = 0;
  for (int c = 0; c < 3; ++c) {
    const float level = rgb[c] > 0 ? (rgb[c] < 255 ? rgb[c] : 255.0f) : 0.0f;
    const float at = level * scale;
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
  const float* corner[4] = {nodes + lowest, nullptr, nullptr, nullptr};
  corner[1] = corner[0] + step[first];
  corner[2] = corner[1] + step[middle];
  corner[3] = corner[2] + step[last];
  const float weight[4] = {1.0f - part[first], part[first] - part[middle],
                           part[middle] - part[last], part[last]};
  for (int c = 0; c < 3; ++c) {
    float sum = weight[0] * corner[0][c];
    for (int k = 1; k < 4; ++k) {
      const float term = weight[k] * corner[k][c];
      sum += term;
    }
    rgb[c] = sum > 0 ? (sum < 255 ? sum : 255.0f) : 0.0f;
  }
}

}  // namespace patchbay::ops
