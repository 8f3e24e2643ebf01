// What a thread of the volume kernels does for a voxel: where it comes from and what is there. The
// formulas are those of the CPU's loops (row_loop_templates.h), in the same order. Include from .cu
// files only. A part of chain.
#pragma once

#include "ops/chain/device_lanes.cuh"
#include "ops/chain/volume_kernel.h"
#include "ops/elastic/elastic_math.h"
#include "ops/gamma/gamma_math.h"
#include "ops/geometry/sample_math.h"
#include "ops/geometry/voxel_math.h"
#include "ops/intensity/tone_math.h"

namespace patchbay::ops {

/// A place between the voxels of the block.
struct VoxelPlace {
  DeviceLanes z, y, x;
};

/// The field's points along one row of a patch.
using RowOfPoints = float[3][kElasticPointsMax];

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

/// The mean of the eight voxels of a block of `source` around a place.
template <typename T>
__device__ inline DeviceLanes Sampled(const T* block, const DeviceGeometry& geometry,
                                      const VoxelPlace& place) {
  const float(&last)[3] = geometry.map.last;
  const DeviceLanes z = VoxelBefore(place.z, last[0]), y = VoxelBefore(place.y, last[1]),
                    x = VoxelBefore(place.x, last[2]);
  const DeviceLanes part_z = place.z - z, part_y = place.y - y, part_x = place.x - x;
  const std::int64_t below = geometry.source.x, behind = geometry.source.x * geometry.source.y;
  const T* at = block + static_cast<std::int64_t>(z.v) * behind +
                static_cast<std::int64_t>(y.v) * below + static_cast<std::int64_t>(x.v);
  const auto between = [&](const T* pair) {
    return Between(DeviceLanes{static_cast<float>(__ldg(pair))},
                   DeviceLanes{static_cast<float>(__ldg(pair + 1))}, part_x);
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

/// Casts in order, then into element `at` of the slot.
__device__ inline void StoreVoxel(const VolumeLaunch& launch, std::byte* d_out, std::int64_t at,
                                  float value) {
  for (int n = 0; n < launch.casts; ++n) {
    value = CastValue(CastBits(value, launch.cast[n]), launch.cast[n]);
  }
  StoreAs(launch.to, d_out, at, value);
}

}  // namespace patchbay::ops
