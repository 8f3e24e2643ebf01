// A kernel thread's part for one value of an image or a volume: its source place, and the value
// there. The formulas are those of the CPU's loops (row_loop_templates.h), in the same order.
// Include from .cu files only. A part of chain.
#pragma once

#include "ops/chain/chain_kernel.h"
#include "ops/chain/device_lanes.cuh"
#include "ops/geometry/map_math.h"

namespace patchbay::ops {

/// A place between the pixels of the source, folded.
struct SamplePlace {
  DeviceLanes y, x;
};

/// How far a field moves a finished pixel along one axis.
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
  const int points = geometry.field.points;
  if (points != 0) {
    const auto down =
        PlaceInSpline<DeviceLanes>(static_cast<int>(i), geometry.inverse_spacing_y, points);
    const auto along =
        PlaceInSpline<DeviceLanes>(static_cast<int>(j), geometry.inverse_spacing_x, points);
    row = row + Displacement(geometry.field.dy, points, down, along);
    column = column + Displacement(geometry.field.dx, points, down, along);
  }
  return {Folded(MappedY(geometry.map, row, column), geometry.fold_y),
          Folded(MappedX(geometry.map, row, column), geometry.fold_x)};
}

/// Channels [first, first + kTogether) of finished pixel (i, j) of slice `z`, of an image.
template <typename Source, int kTogether>
__device__ inline void GatherPixel(const DeviceGeometry& geometry, int channels, std::int64_t z,
                                   std::int64_t i, std::int64_t j, int first,
                                   DeviceLanes (&value)[kTogether]) {
  const PatchGeometry& plane = *geometry.d_plane;
  const DeviceExtent& size = geometry.source;
  const auto* source =
      reinterpret_cast<const Source*>(geometry.d_source) + z * size.y * size.x * channels + first;
  if (plane.whole_pixels) {
    const PixelPlace place = SourceOf(plane.window, i, j);
    const Source* at = source + (place.y * size.x + place.x) * channels;
    for (int c = 0; c < kTogether; ++c) value[c] = {static_cast<float>(__ldg(at + c))};
    return;
  }
  const SamplePlace place = PlaceOf(plane, i, j);
  const DeviceLanes y_before = PixelBefore(place.y, plane.fold_y);
  const DeviceLanes x_before = PixelBefore(place.x, plane.fold_x);
  const DeviceLanes part_y = place.y - y_before, part_x = place.x - x_before;
  const auto y = static_cast<std::int64_t>(y_before.v), x = static_cast<std::int64_t>(x_before.v);
  const std::int64_t right = x + 1 < size.x ? channels : 0;
  const std::int64_t below = y + 1 < size.y ? size.x * channels : 0;
  const Source* at = source + (y * size.x + x) * channels;
  const auto read = [](const Source* from) { return DeviceLanes{static_cast<float>(__ldg(from))}; };
  for (int c = 0; c < kTogether; ++c, ++at) {
    const DeviceLanes above = Between(read(at), read(at + right), part_x);
    const DeviceLanes under = Between(read(at + below), read(at + below + right), part_x);
    value[c] = Between(above, under, part_y);
  }
}

/// The pixel of labels that finished pixel (i, j) of slice `z` takes, of an image.
__device__ inline std::int64_t LabelPixel(const DeviceGeometry& geometry, std::int64_t z,
                                          std::int64_t i, std::int64_t j) {
  const PatchGeometry& plane = *geometry.d_plane;
  PixelPlace place;
  if (plane.whole_pixels) {
    place = SourceOf(plane.window, i, j);
  } else {
    const SamplePlace at = PlaceOf(plane, i, j);
    place = {static_cast<std::int64_t>(at.y.v + 0.5f), static_cast<std::int64_t>(at.x.v + 0.5f)};
  }
  return (z * geometry.source.y + place.y) * geometry.source.x + place.x;
}

/// A finished voxel.
struct Point3 {
  std::int64_t z, y, x;
};

/// A place between the voxels of the block.
struct VoxelPlace {
  DeviceLanes z, y, x;
};

/// The field's points along one row of a patch.
using RowOfPoints = float[3][kFieldPointsMax];

/// Point `i` of axis `axis` for row (z, y).
__device__ inline float PointOfRow(const DeviceGeometry& geometry, int axis, int i, std::int64_t z,
                                   std::int64_t y) {
  const int n = geometry.points;
  const auto deep = PlaceInSpline<DeviceLanes>(static_cast<int>(z), geometry.inverse_spacing[0], n);
  const auto down = PlaceInSpline<DeviceLanes>(static_cast<int>(y), geometry.inverse_spacing[1], n);
  const float* const moves = geometry.d_moves + axis * n * n * n;
  DeviceLanes at[4];
  for (int k = 0; k < 4; ++k) {
    const float* from = moves + (deep.cell * n + down.cell + k) * n + i;
    at[k] = SplineSum(deep.weight, DeviceLanes{from[0]}, DeviceLanes{from[n * n]},
                      DeviceLanes{from[2 * n * n]}, DeviceLanes{from[3 * n * n]});
  }
  return SplineSum(down.weight, at[0], at[1], at[2], at[3]).v;
}

__device__ inline VoxelPlace PlaceOf(const DeviceGeometry& geometry, const RowOfPoints* points,
                                     std::int64_t z, std::int64_t y, std::int64_t x) {
  DeviceLanes at[3] = {{static_cast<float>(z)}, {static_cast<float>(y)}, {static_cast<float>(x)}};
  if (geometry.points != 0) {
    const auto along = PlaceInSpline<DeviceLanes>(static_cast<int>(x), geometry.inverse_spacing[2],
                                                  geometry.points);
    for (int axis = 0; axis < 3; ++axis) {
      const float* p = (*points)[axis] + along.cell;
      at[axis] = at[axis] + SplineSum(along.weight, DeviceLanes{p[0]}, DeviceLanes{p[1]},
                                      DeviceLanes{p[2]}, DeviceLanes{p[3]});
    }
  }
  const auto mapped = [&](int axis) {
    return MappedAlong(geometry.map, axis, at[0], at[1], at[2]);
  };
  return {mapped(0), mapped(1), mapped(2)};
}

/// Voxel (z, y, x) of a patch whose voxels move as they are, in its source.
__device__ inline std::int64_t MirroredVoxel(const DeviceGeometry& geometry,
                                             const DeviceExtent& patch, std::int64_t z,
                                             std::int64_t y, std::int64_t x) {
  if (geometry.mirrored[0]) z = patch.z - 1 - z;
  if (geometry.mirrored[1]) y = patch.y - 1 - y;
  if (geometry.mirrored[2]) x = patch.x - 1 - x;
  return (z * geometry.source.y + y) * geometry.source.x + x;
}

/// The mean of the eight voxels of a block of `source` around a place; `block` is a channel's.
template <typename T>
__device__ inline DeviceLanes Sampled(const T* block, const DeviceGeometry& geometry, int channels,
                                      const VoxelPlace& place) {
  const float(&last)[3] = geometry.map.last;
  const DeviceLanes z = VoxelBefore(place.z, last[0]), y = VoxelBefore(place.y, last[1]),
                    x = VoxelBefore(place.x, last[2]);
  const DeviceLanes part_z = place.z - z, part_y = place.y - y, part_x = place.x - x;
  const std::int64_t below = geometry.source.x * channels, behind = geometry.source.y * below;
  const T* at = block + static_cast<std::int64_t>(z.v) * behind +
                static_cast<std::int64_t>(y.v) * below + static_cast<std::int64_t>(x.v) * channels;
  const auto between = [&](const T* pair) {
    return Between(DeviceLanes{static_cast<float>(__ldg(pair))},
                   DeviceLanes{static_cast<float>(__ldg(pair + channels))}, part_x);
  };
  DeviceLanes plane[2];
  for (int k = 0; k < 2; ++k, at += behind) {
    const DeviceLanes above = between(at);
    plane[k] = Between(above, between(at + below), part_y);
  }
  return Between(plane[0], plane[1], part_z);
}

/// The voxel of labels nearest to a place, halves upwards.
__device__ inline std::int64_t NearestVoxel(const DeviceGeometry& geometry,
                                            const VoxelPlace& place) {
  const auto whole = [](DeviceLanes at) {
    return static_cast<std::int64_t>(Floor(at + DeviceLanes{0.5f}).v);
  };
  return (whole(place.z) * geometry.source.y + whole(place.y)) * geometry.source.x + whole(place.x);
}

/// The sum over a line of `count` values that lie `stride` apart, mirrored about its ends.
template <typename T>
__device__ inline float Weighed(const DeviceBlur& blur, const T* line, std::int64_t stride,
                                std::int64_t at, std::int64_t count) {
  DeviceLanes sum{};
  for (int k = 0; k <= 2 * blur.radius; ++k) {
    const auto place = MirroredPlace(at + k - blur.radius, count);
    const DeviceLanes value{static_cast<float>(line[place * stride])};
    const DeviceLanes weight{blur.d_weight[k]};
    sum = k == 0 ? weight * value : FusedAdd(weight, value, sum);
  }
  return sum.v;
}

/// Channel `c` of finished voxel (z, y, x), of a volume.
template <typename Source>
__device__ inline DeviceLanes GatherVoxel(const PatchShape& shape, const DeviceGeometry& geometry,
                                          const RowOfPoints* points, const Point3& at, int c) {
  const auto* source = reinterpret_cast<const Source*>(geometry.d_source) + c;
  if (geometry.whole_voxels) {
    const std::int64_t voxel = MirroredVoxel(geometry, shape.patch, at.z, at.y, at.x);
    return {static_cast<float>(__ldg(source + voxel * shape.channels))};
  }
  const VoxelPlace place = PlaceOf(geometry, points, at.z, at.y, at.x);
  return geometry.d_smooth[0] != nullptr
             ? Sampled(geometry.d_smooth[0] + c, geometry, shape.channels, place)
             : Sampled(source, geometry, shape.channels, place);
}

/// The voxel of labels that it takes.
__device__ inline std::int64_t LabelVoxel(const PatchShape& shape, const DeviceGeometry& geometry,
                                          const RowOfPoints* points, const Point3& at) {
  return geometry.whole_voxels
             ? MirroredVoxel(geometry, shape.patch, at.z, at.y, at.x)
             : NearestVoxel(geometry, PlaceOf(geometry, points, at.z, at.y, at.x));
}

/// The element of `channel` at pixel `at` of a finished patch.
__device__ inline void StoreElement(const PatchShape& shape, std::byte* d_out, std::int64_t at,
                                    int channel, float value) {
  StoreAs(shape.to, d_out,
          shape.planar ? channel * shape.patch.Voxels() + at : at * shape.channels + channel,
          value);
}

}  // namespace patchbay::ops
