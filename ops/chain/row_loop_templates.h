// The loops of row_loops.h, for one lane type. Templates only: include after the target pragma of a
// variant, once its lane type is declared. A part of chain.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/chain/row_loops.h"
#include "ops/chain/scalar_lanes.h"
#include "ops/chain/step_lists.h"
#include "ops/geometry/map_math.h"

namespace patchbay::ops {

/// Places of the pixels from column j on.
template <typename V>
PB_LANE_CODE void PlacesAt(const PixelRow& pixels, std::int64_t j, V& y, V& x) {
  const PatchGeometry& geometry = *pixels.geometry;
  V row = V::All(static_cast<float>(pixels.row));
  V column = (V::Whole::Iota() + V::Whole::All(static_cast<std::uint32_t>(j))).ToFloat();
  if (pixels.dy != nullptr) {
    row = row + V::Load(pixels.dy + j);
    column = column + V::Load(pixels.dx + j);
  }
  y = Folded(MappedY(geometry.map, row, column), geometry.fold_y);
  x = Folded(MappedX(geometry.map, row, column), geometry.fold_x);
}

template <typename V>
void LoopPlaces(const PixelRow& pixels, std::int64_t stride) {
  for (std::int64_t j = 0; j < stride; j += V::kLanes) {
    V y, x;
    PlacesAt(pixels, j, y, x);
    y.Store(pixels.at_y + j);
    x.Store(pixels.at_x + j);
  }
}

template <typename V>
void LoopGatherRgb(const PixelRow& pixels, const FloatRows& rows) {
  using Whole = typename V::Whole;
  const Strided& source = *pixels.source;
  const auto* base = reinterpret_cast<const std::uint8_t*>(source.data);
  const auto row_bytes = static_cast<std::uint32_t>(source.row_bytes);
  const std::uint32_t next_row = source.height > 1 ? row_bytes : 0;
  const auto last_load =
      static_cast<std::uint32_t>((source.height - 1) * source.row_bytes + 3 * source.width - 8);
  for (std::int64_t j = 0; j < rows.width; j += V::kLanes) {
    V y, x;
    PlacesAt(pixels, j, y, x);
    const V y0 = PixelBefore(y, pixels.geometry->fold_y),
            x0 = PixelBefore(x, pixels.geometry->fold_x);
    Whole ignored, offset, column;
    Whole::Nearest(y0).Product(row_bytes, ignored, offset);
    Whole::Nearest(x0).Product(3u, ignored, column);
    offset = offset + column;
    V a[3], b[3], c[3], d[3];
    LoadPairs(base, offset, last_load, a, b);
    LoadPairs(base, offset + Whole::All(next_row), last_load, c, d);
    const V part_y = y - y0, part_x = x - x0;
    for (int k = 0; k < 3; ++k) {
      Between(Between(a[k], b[k], part_x), Between(c[k], d[k], part_x), part_y)
          .Store(rows.Row(k) + j);
    }
  }
}

template <typename V>
void LoopWiden(const std::uint8_t* bytes, const FloatRows& rows) {
  for (int c = 0; c < rows.channels; ++c) {
    for (std::int64_t j = 0; j < rows.width; j += V::kLanes) {
      V::LoadBytes(bytes + c * rows.stride + j).Store(rows.Row(c) + j);
    }
  }
}

template <typename V>
void LoopSplineColumns(std::int64_t stride, float inverse_spacing, int points,
                       SplineColumns& columns) {
  for (std::int64_t& end : columns.end) end = 0;
  for (std::int64_t j = 0; j < stride; ++j) {
    const auto place = PlaceInSpline<ScalarLanes>(static_cast<int>(j), inverse_spacing, points);
    for (int k = 0; k < 4; ++k) columns.weight[k][j] = place.weight[k].v;
    columns.end[place.cell] = j + 1;
  }
  columns.end[points - 4] = stride;
}

/// The spline along a row, given the control points of that row.
template <typename V>
void LoopSplineAlong(const float* at_row, const SplineColumns& columns, int points, float* out) {
  std::int64_t j = 0;
  for (int cell = 0; cell <= points - 4; ++cell) {
    const V a = V::All(at_row[cell]), b = V::All(at_row[cell + 1]), c = V::All(at_row[cell + 2]),
            d = V::All(at_row[cell + 3]);
    // The last vector of a cell reaches into the next cell, which overwrites those columns.
    for (; j < columns.end[cell]; j += V::kLanes) {
      const V weight[4] = {V::Load(columns.weight[0] + j), V::Load(columns.weight[1] + j),
                           V::Load(columns.weight[2] + j), V::Load(columns.weight[3] + j)};
      SplineSum(weight, a, b, c, d).Store(out + j);
    }
    if (columns.end[cell] != 0) j = columns.end[cell];
  }
}

template <typename V>
void LoopDisplace(const PatchGeometry& geometry, const float* field, const SplineColumns& columns,
                  std::int64_t row, float* out) {
  const int points = geometry.field.points;
  const auto place =
      PlaceInSpline<ScalarLanes>(static_cast<int>(row), geometry.inverse_spacing_y, points);
  float at_row[kFieldPointsMax];
  for (int x = 0; x < points; ++x) {
    const float* column = field + place.cell * points + x;
    at_row[x] = SplineSum(place.weight, ScalarLanes{column[0]}, ScalarLanes{column[points]},
                          ScalarLanes{column[2 * points]}, ScalarLanes{column[3 * points]})
                    .v;
  }
  LoopSplineAlong<V>(at_row, columns, points, out);
}

template <typename V>
PB_LANE_CODE void LoadPixel(const FloatRows& rows, std::int64_t j, V (&rgb)[3]) {
  for (int c = 0; c < 3; ++c) rgb[c] = V::Load(rows.Row(c) + j);
}

/// The sum of grey values of the pixels from column j on, in 2^-16.
template <typename V>
PB_LANE_CODE std::uint64_t GreyAt(const FloatRows& rows, std::int64_t j, float to_one) {
  V rgb[3];
  LoadPixel(rows, j, rgb);
  for (V& x : rgb) x = Within01(x * V::All(to_one));
  return V::Whole::Nearest(GreyOf01(rgb) * V::All(65536.0f)).Total();
}

template <typename V>
std::uint64_t LoopGreySum(const FloatRows& rows, float white) {
  const float to_one = 1.0f / white;
  std::uint64_t sum = 0;
  std::int64_t j = 0;
  for (; j + V::kLanes <= rows.width; j += V::kLanes) sum += GreyAt<V>(rows, j, to_one);
  for (; j < rows.width; ++j) sum += GreyAt<ScalarLanes>(rows, j, to_one);
  return sum;
}

template <typename V>
void LoopWeigh(const float* weight, const float* const* tap, int count, std::int64_t stride,
               float* out) {
  for (std::int64_t j = 0; j < stride; j += V::kLanes) {
    V sum = V::All(weight[0]) * V::Load(tap[0] + j);
    for (int k = 1; k < count; ++k) sum = FusedAdd(V::All(weight[k]), V::Load(tap[k] + j), sum);
    sum.Store(out + j);
  }
}

/// A step over a row; rgb steps take three channels together, others any number.
template <typename V, typename Step>
void LoopPoint(const void* bytes, std::int64_t row, const FloatRows& rows) {
  Step step;  // a copy, which no store can change
  std::memcpy(&step, bytes, sizeof step);
  constexpr StepForm kForm = FormOf<Step>::kForm;
  if constexpr (std::is_same_v<Step, ExactStep>) {
    ApplyExactly(step, rows);
  } else if constexpr (kForm == StepForm::kPixels) {
    ApplyToPixels(step, rows.Row(0), rows.Row(1), rows.Row(2), rows.width);
  } else if constexpr (kForm == StepForm::kRgb) {
    for (std::int64_t j = 0; j < rows.width; j += V::kLanes) {
      V rgb[3];
      LoadPixel(rows, j, rgb);
      Apply(step, rgb);
      for (int c = 0; c < 3; ++c) rgb[c].Store(rows.Row(c) + j);
    }
  } else if constexpr (kForm == StepForm::kPlaced) {
    for (int c = 0; c < rows.channels; ++c) {
      ApplyPlaced<V>(step, row * rows.channels + c, rows.width, rows.stride, rows.Row(c));
    }
  } else if constexpr (kForm != StepForm::kInDouble) {
    using Lane = std::conditional_t<kForm == StepForm::kOneByOne, ScalarLanes, V>;
    for (int c = 0; c < rows.channels; ++c) {
      const auto own = OfChannel(step, c);
      float* const value = rows.Row(c);
      for (std::int64_t j = 0; j < rows.width; j += Lane::kLanes) {
        Applied(own, Lane::Load(value + j)).Store(value + j);
      }
    }
  }
}

template <typename V, typename List>
struct PointLoops;
template <typename V, typename... Steps>
struct PointLoops<V, StepList<Steps...>> {
  static constexpr void (*kLoops[])(const void* bytes, std::int64_t row,
                                    const FloatRows& rows) = {&LoopPoint<V, Steps>...};
};

/// `count` values of a row as elements: whole vectors, the last perhaps beyond `count`.
template <typename V>
PB_LANE_CODE void StoreElements(const float* row, std::int64_t count, CastTo to, std::byte* out) {
  for (std::int64_t j = 0; j < count; j += V::kLanes) {
    const V v = V::Load(row + j);
    switch (to) {
      case CastTo::kUint8:
        v.StoreUint8(reinterpret_cast<std::uint8_t*>(out) + j);
        break;
      case CastTo::kFloat16:
        v.StoreHalf(reinterpret_cast<std::uint16_t*>(out) + j);
        break;
      case CastTo::kBfloat16:
        v.StoreBfloat(reinterpret_cast<std::uint16_t*>(out) + j);
        break;
      default:
        v.Store(reinterpret_cast<float*>(out) + j);
    }
  }
}

template <typename V>
void LoopStore(const FloatRows& rows, const RowTarget& target) {
  const std::int64_t element = ElementBytes(target.to);
  for (int c = 0; c < rows.channels; ++c) {
    std::byte* room = target.room + c * rows.stride * element;
    StoreElements<V>(rows.Row(c), rows.width, target.to, room);
    if (!target.planar) continue;
    std::byte* out = target.out + c * target.channel_bytes;
    const std::int64_t bytes = rows.width * element;
    if (bytes % 64 == 0 && reinterpret_cast<std::uintptr_t>(out) % 64 == 0) {
      V::CopyPast(out, room, bytes);
    } else {
      std::memcpy(out, room, static_cast<std::size_t>(bytes));
    }
  }
  if (!target.planar) Interleave(rows, target);
}

/// Voxels `index` and `index` + 1. No voxel from `count` on is read.
template <typename T>
PB_LANE_CODE void LoadVoxelPair(const T* voxels, ScalarLanes::Whole index, std::uint32_t /*count*/,
                                ScalarLanes& a, ScalarLanes& b) {
  a = {static_cast<float>(voxels[index.v])};
  b = {static_cast<float>(voxels[index.v + 1])};
}

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

/// Linear index (z * size.y + y) * size.x + x of whole coordinates.
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
constexpr RowLoops LoopsOf(const char* name) {
  return {name,
          &LoopPlaces<V>,
          &LoopGatherRgb<V>,
          &LoopWiden<V>,
          &LoopSplineColumns<V>,
          &LoopDisplace<V>,
          PointLoops<V, PointSteps>::kLoops,
          &LoopGreySum<V>,
          &LoopWeigh<V>,
          &LoopStore<V>,
          &LoopGatherVoxels<V>,
          &LoopNearestVoxels<V>,
          &LoopSums<V>,
          &LoopSplineAlong<V>};
}

}  // namespace patchbay::ops
