// icc_to_srgb: the formula. A pixel's tetrahedron has four of its cell's eight corners: the lowest,
// the highest, and two on the way from one to the other, first along the axis with the largest
// part. Templates; include after the target pragma of a variant.
#pragma once

#include <cstdint>

#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// sRGB levels of one node: red, green, blue and one that is not used, for aligned loads.
struct alignas(16) IccNode {
  float level[4] = {0, 0, 0, 0};
};

/// Nodes from the lowest corner of a cell to the highest.
PB_LANE_CODE int AcrossCell(int grid) { return grid * grid + grid + 1; }

/// The places of pixels among the nodes.
template <typename V>
struct IccPlace {
  V corner[4];  ///< nodes of the tetrahedron, whole numbers
  V weight[4];  ///< weight of each node
};

template <typename V>
PB_LANE_CODE V WithinLevels(V value) {
  return Min(Max(value, V::All(0.0f)), V::All(255.0f));
}

/// The tetrahedra of device levels 0 to 255 in a grid of `grid` nodes along each axis, blue
/// fastest. No branches: which part is the largest changes from pixel to pixel.
template <typename V>
PB_LANE_CODE IccPlace<V> IccPlaceOf(int grid, const V (&rgb)[3]) {
  const V red = V::All(static_cast<float>(grid * grid)), green = V::All(static_cast<float>(grid)),
          blue = V::All(1.0f), steps[3] = {red, green, blue};
  const V scale = V::All(static_cast<float>(grid - 1) / 255.0f),
          last_cell = V::All(static_cast<float>(grid - 2));
  V part[3], lowest = V::All(0.0f);
  for (int c = 0; c < 3; ++c) {
    const V at = WithinLevels(rgb[c]) * scale, cell = Min(Floor(at), last_cell);
    part[c] = at - cell;
    lowest = FusedAdd(cell, steps[c], lowest);
  }
  const V larger = Max(part[0], part[1]), smaller = Min(part[0], part[1]);
  const V most = Max(larger, part[2]), least = Min(smaller, part[2]);
  const V middle = Max(smaller, Min(larger, part[2]));
  const V first = WhereEqual(most, part[0], red, WhereEqual(most, part[1], green, blue));
  const V last = WhereEqual(least, part[2], blue, WhereEqual(least, part[1], green, red));
  const V highest = lowest + V::All(static_cast<float>(AcrossCell(grid)));
  return {{lowest, lowest + first, highest - last, highest},
          {V::All(1.0f) - most, most - middle, middle - least, least}};
}

/// Levels between those of the four nodes.
template <typename V>
PB_LANE_CODE V BetweenNodes(const V (&weight)[4], const V (&level)[4]) {
  return WithinLevels(((weight[0] * level[0] + weight[1] * level[1]) + weight[2] * level[2]) +
                      weight[3] * level[3]);
}

struct IccStep {
  static constexpr StepForm kForm = StepForm::kPixels;
  KeptValues<IccNode> kept;  ///< the lookup's nodes
  int grid = 2;
};

/// `V` holds one value.
template <typename V>
PB_LANE_CODE void Apply(const IccStep& step, V (&rgb)[3]) {
  const IccPlace<V> at = IccPlaceOf(step.grid, rgb);
  IccNode node[4];
  for (int k = 0; k < 4; ++k) node[k] = step.kept.at[V::Whole::Nearest(at.corner[k]).v];
  for (int c = 0; c < 3; ++c) {
    const V level[4] = {
        {node[0].level[c]}, {node[1].level[c]}, {node[2].level[c]}, {node[3].level[c]}};
    rgb[c] = BetweenNodes(at.weight, level);
  }
}
/// A row of `width` pixels; the same bits.
void ApplyToPixels(const IccStep& step, float* red, float* green, float* blue, std::int64_t width);

}  // namespace patchbay::ops
