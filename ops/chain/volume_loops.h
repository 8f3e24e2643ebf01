// The loops of volume_rows.h, for one lane type. Templates only: include after the target pragma of
// a variant, once its lane type is declared. A part of chain.
#pragma once

#include <algorithm>

#include "ops/chain/float_loops.h"
#include "ops/chain/volume_rows.h"
#include "ops/volume/volume_math.h"

namespace patchbay::ops {

/// Places of the voxels from column j on, one lane each.
template <typename V>
struct VoxelPlaces {
  V z, y, x;

  PB_LANE_CODE VoxelPlaces(const VoxelRow& row, std::int64_t j) {
    V at_z = V::All(static_cast<float>(row.z)), at_y = V::All(static_cast<float>(row.y));
    V at_x = (V::Whole::Iota() + V::Whole::All(static_cast<std::uint32_t>(j))).ToFloat();
    if (row.moves[0] != nullptr) {
      at_z = at_z + V::Load(row.moves[0] + j);
      at_y = at_y + V::Load(row.moves[1] + j);
      at_x = at_x + V::Load(row.moves[2] + j);
    }
    z = MappedAlong(*row.map, 0, at_z, at_y, at_x);
    y = MappedAlong(*row.map, 1, at_z, at_y, at_x);
    x = MappedAlong(*row.map, 2, at_z, at_y, at_x);
  }
};

/// (z size.y + y) size.x + x of whole coordinates.
template <typename V>
PB_LANE_CODE typename V::Whole VoxelIndex(const Extent& size, V z, V y, V x) {
  using Whole = typename V::Whole;
  Whole ignored, row, index;
  Whole::Nearest(z).Product(static_cast<std::uint32_t>(size.y), ignored, row);
  row = row + Whole::Nearest(y);
  row.Product(static_cast<std::uint32_t>(size.x), ignored, index);
  return index + Whole::Nearest(x);
}

template <typename V, typename T>
void GatherTyped(const VoxelRow& row, float* out) {
  using Whole = typename V::Whole;
  const Extent& size = row.block->size;
  const auto* voxels = reinterpret_cast<const T*>(row.block->data);
  const auto voxel_count = static_cast<std::uint32_t>(size.z * size.y * size.x);
  const Whole below = Whole::All(static_cast<std::uint32_t>(size.x));
  const Whole behind = Whole::All(static_cast<std::uint32_t>(size.x * size.y));
  for (std::int64_t j = 0; j < row.width; j += V::kLanes) {
    const VoxelPlaces<V> place(row, j);
    const V z = VoxelBefore(place.z, row.map->last[0]), y = VoxelBefore(place.y, row.map->last[1]),
            x = VoxelBefore(place.x, row.map->last[2]);
    const V part_z = place.z - z, part_y = place.y - y, part_x = place.x - x;
    const Whole at = VoxelIndex(size, z, y, x);
    V a, b, plane[2];
    for (int k = 0; k < 2; ++k) {
      const Whole first = k == 0 ? at : at + behind;
      LoadVoxelPair(voxels, first, voxel_count, a, b);
      const V above = Between(a, b, part_x);
      LoadVoxelPair(voxels, first + below, voxel_count, a, b);
      plane[k] = Between(above, Between(a, b, part_x), part_y);
    }
    Between(plane[0], plane[1], part_z).Store(out + j);
  }
}

template <typename V>
void LoopGatherVoxels(const VoxelRow& row, float* out) {
  switch (row.block->dtype) {
    case DType::kUint8:
      return GatherTyped<V, std::uint8_t>(row, out);
    case DType::kUint16:
      return GatherTyped<V, std::uint16_t>(row, out);
    case DType::kInt16:
      return GatherTyped<V, std::int16_t>(row, out);
    default:
      return GatherTyped<V, float>(row, out);
  }
}

template <typename V>
void LoopNearestVoxels(const VoxelRow& row, std::uint8_t* out) {
  const auto nearest = [](V at) { return Floor(at + V::All(0.5f)); };
  alignas(64) std::uint32_t index[V::kLanes];
  for (std::int64_t j = 0; j < row.width; j += V::kLanes) {
    const VoxelPlaces<V> place(row, j);
    VoxelIndex(row.block->size, nearest(place.z), nearest(place.y), nearest(place.x))
        .AsBits()
        .Store(reinterpret_cast<float*>(index));
    const std::int64_t count = std::min<std::int64_t>(V::kLanes, row.width - j);
    for (std::int64_t k = 0; k < count; ++k) {
      out[j + k] = std::to_integer<std::uint8_t>(row.block->data[index[k]]);
    }
  }
}

template <typename V>
void LoopTone(const Tone& tone, std::int64_t width, float* row) {
  for (std::int64_t j = 0; j < width; j += V::kLanes) Toned(tone, V::Load(row + j)).Store(row + j);
}

template <typename V>
void LoopLine(const LineWithin& line, std::int64_t width, float* row) {
  for (std::int64_t j = 0; j < width; j += V::kLanes) Lined(line, V::Load(row + j)).Store(row + j);
}

template <typename V>
void LoopPower(const PowerCurve& curve, std::int64_t width, float* row) {
  for (std::int64_t j = 0; j < width; j += V::kLanes)
    Curved(curve, V::Load(row + j)).Store(row + j);
}

/// Column j of a row adds to sum j mod 16, whatever the width of a register.
template <typename V>
PatchSums LoopSums(const float* row, std::int64_t width, float shift) {
  constexpr int kSums = kSumLanes, kRegisters = kSums / V::kLanes;
  V sum[kRegisters], square[kRegisters], least[kRegisters], most[kRegisters];
  for (int r = 0; r < kRegisters; ++r) {
    sum[r] = square[r] = V::All(0.0f);
    least[r] = most[r] = V::All(row[0]);
  }
  std::int64_t j = 0;
  for (; j + kSums <= width; j += kSums) {
    for (int r = 0; r < kRegisters; ++r) {
      const V v = V::Load(row + j + r * V::kLanes), d = v - V::All(shift);
      sum[r] = sum[r] + d;
      square[r] = FusedAdd(d, d, square[r]);
      least[r] = Min(least[r], v);
      most[r] = Max(most[r], v);
    }
  }
  alignas(64) float lane[4][kSums];
  for (int r = 0; r < kRegisters; ++r) {
    sum[r].Store(lane[0] + r * V::kLanes);
    square[r].Store(lane[1] + r * V::kLanes);
    least[r].Store(lane[2] + r * V::kLanes);
    most[r].Store(lane[3] + r * V::kLanes);
  }
  for (int k = 0; j < width; ++j, ++k) {
    const ScalarLanes v{row[j]}, d = v - ScalarLanes{shift};
    lane[0][k] += d.v;
    lane[1][k] = FusedAdd(d, d, ScalarLanes{lane[1][k]}).v;
    lane[2][k] = Min(ScalarLanes{lane[2][k]}, v).v;
    lane[3][k] = Max(ScalarLanes{lane[3][k]}, v).v;
  }
  return JoinedLanes(lane[0], lane[1], lane[2], lane[3]);
}

template <typename V>
constexpr VolumeLoops VolumeLoopsOf() {
  return {&LoopGatherVoxels<V>, &LoopNearestVoxels<V>, &LoopTone<V>,       &LoopSums<V>,
          &LoopLine<V>,         &LoopPower<V>,         &LoopSplineAlong<V>};
}

}  // namespace patchbay::ops
