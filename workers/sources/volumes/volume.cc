#include "workers/sources/volumes/volume.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"

namespace patchbay::workers {
namespace {

template <typename T>
void CopyReordered(const T* from, const Extent& size, const AxisOrder& order, T* to) {
  const std::int64_t strides[3] = {size.y * size.x, size.x, 1};
  const std::int64_t sides[3] = {size.z, size.y, size.x};
  std::int64_t step[3], begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const int axis = order.from[i];
    step[i] = order.flipped[i] ? -strides[axis] : strides[axis];
    if (order.flipped[i]) begin += (sides[axis] - 1) * strides[axis];
  }
  const Extent out = Reordered(size, order);
  for (std::int64_t z = 0; z < out.z; ++z) {
    for (std::int64_t y = 0; y < out.y; ++y) {
      const T* at = from + begin + z * step[0] + y * step[1];
      for (std::int64_t x = 0; x < out.x; ++x) *to++ = at[x * step[2]];
    }
  }
}

template <typename T>
ValueRange RangeOfAll(const T* values, std::size_t count) {
  ValueRange range{static_cast<double>(values[0]), static_cast<double>(values[0]), 0};
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
    sum += value;
  }
  range.mean = sum / static_cast<double>(count);
  return range;
}

}  // namespace

TensorView Volume::View() {
  return ContiguousView<4>(voxels.data(), dtype, {size.z, size.y, size.x, 1});
}

Spacing Volume::SpacingMm() const {
  Spacing spacing;
  spacing.z = AxisSpacing{Norm(affine.z), LengthUnit::kMillimeter};
  spacing.y = AxisSpacing{Norm(affine.y), LengthUnit::kMillimeter};
  spacing.x = AxisSpacing{Norm(affine.x), LengthUnit::kMillimeter};
  return spacing;
}

Status CheckVolumeSize(const Extent& size, const std::string& what) {
  bool fits = true;
  for (const std::int64_t side : {size.z, size.y, size.x})
    fits &= side >= 1 && side <= kMaxReadSide;
  if (fits && size.z * size.y * size.x <= kMaxReadVoxels) return absl::OkStatus();
  return InvalidArgument(what, ": a volume of ", size.z, " x ", size.y, " x ", size.x,
                         " voxels; sides are 1 to ", kMaxReadSide, " and voxels at most ",
                         kMaxReadVoxels);
}

Status AllocateVoxels(Volume& volume) {
  const auto bytes = static_cast<std::uint64_t>(volume.size.Pixels()) * SizeOf(volume.dtype);
  // Twice: voxels are reordered from one block of memory into another.
  PB_RETURN_IF_ERROR(CheckMemoryFits("read volume", 2 * bytes, AvailableMemory()));
  volume.voxels.resize(static_cast<std::size_t>(bytes));
  return absl::OkStatus();
}

void Reorder(Volume& volume, const AxisOrder& order) {
  if (order.IsIdentity()) return;
  std::vector<std::byte> moved(volume.voxels.size());
  if (volume.dtype == DType::kInt16) {
    CopyReordered(reinterpret_cast<const std::int16_t*>(volume.voxels.data()), volume.size, order,
                  reinterpret_cast<std::int16_t*>(moved.data()));
  } else {
    CopyReordered(reinterpret_cast<const float*>(volume.voxels.data()), volume.size, order,
                  reinterpret_cast<float*>(moved.data()));
  }
  volume.voxels = std::move(moved);
  volume.affine = Reordered(volume.affine, volume.size, order);
  volume.size = Reordered(volume.size, order);
  const int stacked = volume.slice_axis == 'z' ? 0 : volume.slice_axis == 'y' ? 1 : 2;
  for (std::size_t i = 0; i < 3; ++i) {
    if (order.from[i] != stacked) continue;
    volume.slice_axis = "zyx"[i];
    if (order.flipped[i])
      std::reverse(volume.slice_positions.begin(), volume.slice_positions.end());
    break;
  }
  volume.log.push_back({{"step", "reorder axes"}, {"axes", order.ToString()}});
}

std::string NonFiniteVoxels::ToString(const Extent& size) const {
  if (nan + infinite == 0) return "";
  return StrCat(nan == 0 ? "" : StrCat(nan, " NaN"), nan > 0 && infinite > 0 ? " and " : "",
                infinite == 0 ? "" : StrCat(infinite, " infinite"), " of ", size.Pixels(),
                " voxels");
}

NonFiniteVoxels FindNonFinite(const Volume& volume) {
  NonFiniteVoxels found;
  if (volume.dtype != DType::kFloat32) return found;
  const std::span values(reinterpret_cast<const float*>(volume.voxels.data()),
                         static_cast<std::size_t>(volume.size.Pixels()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    if (found.nan + found.infinite == 0) found.first = i;
    ++(std::isnan(values[i]) ? found.nan : found.infinite);
  }
  return found;
}

void ReplaceNonFinite(Volume& volume, float value) {
  const NonFiniteVoxels found = FindNonFinite(volume);
  if (found.nan + found.infinite == 0) return;
  const std::span values(reinterpret_cast<float*>(volume.voxels.data()),
                         static_cast<std::size_t>(volume.size.Pixels()));
  for (float& one : values) {
    if (!std::isfinite(one)) one = value;
  }
  volume.log.push_back({{"step", "replace NaN and infinity"},
                        {"value", value},
                        {"nan_voxels", found.nan},
                        {"infinite_voxels", found.infinite}});
  volume.warnings.push_back(StrCat(found.ToString(volume.size), " are ", value, " here"));
}

bool IsWhole(double value) { return value == std::floor(value) && std::abs(value) < 1e6; }

ValueRange RangeOf(const Volume& volume) {
  const auto count = static_cast<std::size_t>(volume.size.Pixels());
  if (count == 0) return {};
  if (volume.dtype == DType::kInt16) {
    return RangeOfAll(reinterpret_cast<const std::int16_t*>(volume.voxels.data()), count);
  }
  return RangeOfAll(reinterpret_cast<const float*>(volume.voxels.data()), count);
}

}  // namespace patchbay::workers
