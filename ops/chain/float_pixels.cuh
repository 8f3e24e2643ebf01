// What a thread of the float kernels does for a pixel: where it comes from, what is there, and what
// becomes of it. The formulas are those of the CPU's loops (row_loop_templates.h), in the same
// order. Include from .cu files only. A part of chain.
#pragma once

#include "ops/chain/chain_kernel.h"
#include "ops/chain/device_lanes.cuh"
#include "ops/elastic/elastic_math.h"
#include "ops/geometry/sample_math.h"

namespace patchbay::ops {

/// A place between the pixels of the source, folded.
struct SamplePlace {
  DeviceLanes y, x;
};

/// How far elastic moves a finished pixel along one axis.
__device__ inline DeviceLanes Displacement(const float* field, int points,
                                           const SplinePlace<DeviceLanes>& row,
                                           const SplinePlace<DeviceLanes>& column) {
  DeviceLanes at[4];
  for (int k = 0; k < 4; ++k) {
    const float* from = field + row.cell * points + column.cell + k;
    at[k] = SplineSum(row.weight, DeviceLanes{from[0]}, DeviceLanes{from[points]},
                      DeviceLanes{from[2 * points]}, DeviceLanes{from[3 * points]});
  }
  return SplineSum(column.weight, at[0], at[1], at[2], at[3]);
}

__device__ inline SamplePlace PlaceOf(const PatchGeometry& geometry, std::int64_t i,
                                      std::int64_t j) {
  DeviceLanes row{static_cast<float>(i)}, column{static_cast<float>(j)};
  const int points = geometry.elastic.points;
  if (points != 0) {
    const auto down =
        PlaceInSpline<DeviceLanes>(static_cast<int>(i), geometry.inverse_spacing_y, points);
    const auto along =
        PlaceInSpline<DeviceLanes>(static_cast<int>(j), geometry.inverse_spacing_x, points);
    row = row + Displacement(geometry.elastic.dy, points, down, along);
    column = column + Displacement(geometry.elastic.dx, points, down, along);
  }
  return {Folded(MappedY(geometry.map, row, column), geometry.fold_y),
          Folded(MappedX(geometry.map, row, column), geometry.fold_x)};
}

/// Channels [first, first + kTogether) of finished pixel (i, j).
template <typename Source, int kTogether>
__device__ inline void Gather(const SliceShape& shape, const FloatSlice& slice, std::int64_t i,
                              std::int64_t j, int first, DeviceLanes (&value)[kTogether]) {
  const auto* source = reinterpret_cast<const Source*>(slice.d_source) + first;
  if (slice.geometry.whole_pixels) {
    const PixelPlace place = SourceOf(slice.geometry.window, i, j);
    const Source* at = source + (place.y * shape.source_width + place.x) * shape.channels;
    for (int c = 0; c < kTogether; ++c) value[c] = {static_cast<float>(__ldg(at + c))};
    return;
  }
  const SamplePlace place = PlaceOf(slice.geometry, i, j);
  const DeviceLanes y_before = PixelBefore(place.y, slice.geometry.fold_y);
  const DeviceLanes x_before = PixelBefore(place.x, slice.geometry.fold_x);
  const DeviceLanes part_y = place.y - y_before, part_x = place.x - x_before;
  const auto y = static_cast<std::int64_t>(y_before.v), x = static_cast<std::int64_t>(x_before.v);
  const std::int64_t right = x + 1 < shape.source_width ? shape.channels : 0;
  const std::int64_t below = y + 1 < shape.source_height ? shape.source_width * shape.channels : 0;
  const Source* at = source + (y * shape.source_width + x) * shape.channels;
  const auto read = [](const Source* from) { return DeviceLanes{static_cast<float>(__ldg(from))}; };
  for (int c = 0; c < kTogether; ++c, ++at) {
    const DeviceLanes above = Between(read(at), read(at + right), part_x);
    const DeviceLanes under = Between(read(at + below), read(at + below + right), part_x);
    value[c] = Between(above, under, part_y);
  }
}

/// The element of `channel` at (i, j) of a finished slice.
__device__ inline void StoreElement(const SliceShape& shape, std::byte* d_out, std::int64_t i,
                                    std::int64_t j, int channel, float value) {
  const std::int64_t pixel = i * shape.width + j;
  const std::int64_t at =
      shape.planar ? channel * shape.channel_elements + pixel : pixel * shape.channels + channel;
  StoreAs(shape.to, d_out, at, value);
}

}  // namespace patchbay::ops
