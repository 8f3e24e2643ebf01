#include "workers/jobs/ingest/volume_resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "ops/geometry/resample.h"
#include "runtime/core/strings.h"
#include "runtime/model/resolution/volume_spacing.h"
#include "runtime/os/available_memory.h"
#include "workers/sources/volumes/voxel_values.h"

namespace patchbay::workers {
namespace {

/// Millimetres along z, y, x.
using SpacingMm = std::array<double, 3>;

std::int64_t SideAt(std::int64_t side, double from_mm, double to_mm) {
  return std::max<std::int64_t>(1, std::llrint(static_cast<double>(side) * from_mm / to_mm));
}

/// A step of the new grid, and the shift of its first voxel's centre.
Vec3 Stretch(Vec3& step, std::int64_t from, std::int64_t to) {
  const Vec3 old = step;
  step = step * (static_cast<double>(from) / static_cast<double>(to));
  return (step - old) * 0.5;
}

/// Orders along z, y, x, with 0 along plan::CoarseAxis.
std::array<int, 3> SeparateZ(const SpacingMm& from, const SpacingMm& to, int order) {
  std::array<int, 3> orders = {order, order, order};
  const int axis = plan::CoarseAxis({from[0], from[1], from[2]}, {to[0], to[1], to[2]});
  if (axis != plan::kNoAxis) orders[static_cast<std::size_t>(axis)] = 0;
  return orders;
}

/// As skimage's resize, which nnU-Net calls: values stay within the range of the volume, or of the
/// source's slice across the axis that is resampled by itself.
void KeepRange(const std::vector<float>& in, const Extent& from, const std::array<int, 3>& orders,
               const Extent& to, std::vector<float>& out) {
  const bool is_apart = orders[0] != orders[1] || orders[1] != orders[2];
  const auto axis =
      static_cast<std::size_t>(std::find(orders.begin(), orders.end(), 0) - orders.begin());
  const auto slice_of = [&](const Extent& size, std::int64_t i) -> std::int64_t {
    const std::int64_t at[] = {i / (size.y * size.x), i / size.x % size.y, i % size.x};
    return is_apart ? at[axis] : 0;
  };
  const std::int64_t from_sides[] = {from.z, from.y, from.x}, to_sides[] = {to.z, to.y, to.x};
  std::vector<std::pair<float, float>> ranges(
      static_cast<std::size_t>(is_apart ? from_sides[axis] : 1),
      {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()});
  for (std::int64_t i = 0; i < from.Pixels(); ++i) {
    auto& [least, most] = ranges[static_cast<std::size_t>(slice_of(from, i))];
    least = std::min(least, in[static_cast<std::size_t>(i)]);
    most = std::max(most, in[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < to.Pixels(); ++i) {
    // The nearest slice, in whole numbers.
    const std::int64_t source =
        is_apart ? (2 * slice_of(to, i) + 1) * from_sides[axis] / (2 * to_sides[axis]) : 0;
    const auto& [least, most] = ranges[static_cast<std::size_t>(source)];
    float& value = out[static_cast<std::size_t>(i)];
    value = std::clamp(value, least, most);
  }
}

void PutFloats(const std::vector<float>& values, Volume& volume) {
  volume.voxels.resize(values.size() * SizeOf(volume.dtype));
  if (volume.dtype == DType::kFloat32) {
    std::memcpy(volume.voxels.data(), values.data(), volume.voxels.size());
    return;
  }
  std::transform(values.begin(), values.end(),
                 reinterpret_cast<std::int16_t*>(volume.voxels.data()), NearestInt16);
}

}  // namespace

Status ResampleToSpacing(const IngestSettings& settings, const VolumeProgress& progress,
                         Volume& volume) {
  const SpacingMm& spacing = *settings.spacing;
  const auto order = static_cast<int>(settings.spacing_order);
  std::array<int, 3> orders = {order, order, order};
  const bool is_separate = settings.anisotropic == "separate_z";
  if (is_separate) {
    orders = SeparateZ({Norm(volume.affine.z), Norm(volume.affine.y), Norm(volume.affine.x)},
                       spacing, order);
  }
  const Extent from = volume.size;
  const Extent to{SideAt(from.z, Norm(volume.affine.z), spacing[0]),
                  SideAt(from.y, Norm(volume.affine.y), spacing[1]),
                  SideAt(from.x, Norm(volume.affine.x), spacing[2])};
  PB_RETURN_IF_ERROR(CheckVolumeSize(to, "resample volume"));
  if (to == from) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const ops::Resample resample, ops::Resample::Make(from, to, orders));
  const std::int64_t planes_voxels = from.z * to.y * to.x;
  const auto bytes =
      static_cast<std::uint64_t>(from.Pixels() + planes_voxels + 2 * to.Pixels()) * sizeof(float);
  PB_RETURN_IF_ERROR(CheckMemoryFits("resample volume", bytes, AvailableMemory()));
  const std::vector<float> in = FloatsOf(volume);
  std::vector<float> planes(static_cast<std::size_t>(planes_voxels));
  std::vector<float> out(static_cast<std::size_t>(to.Pixels()));
  for (std::int64_t z = 0; z < from.z; ++z) {
    resample.Planes(in.data(), z, 1, planes.data());
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  for (std::int64_t y = 0; y < to.y; ++y) {
    resample.Rows(planes.data(), y, 1, out.data());
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  if (is_separate) KeepRange(in, from, orders, to, out);
  PutFloats(out, volume);
  volume.size = to;
  volume.affine.origin = volume.affine.origin + Stretch(volume.affine.z, from.z, to.z) +
                         Stretch(volume.affine.y, from.y, to.y) +
                         Stretch(volume.affine.x, from.x, to.x);
  volume.slice_positions.clear();
  volume.log.push_back(
      {{"step", "resample"},
       {"order", orders == std::array{order, order, order} ? Json(order) : Json(orders)},
       {"asked_mm", spacing},
       {"from_shape", {from.z, from.y, from.x}}});
  return absl::OkStatus();
}

}  // namespace patchbay::workers
