#include "workers/jobs/ingest/volume_spacing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/geometry/resample.h"
#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"

namespace patchbay::workers {
namespace {

std::int64_t SideAt(std::int64_t side, double from_mm, double to_mm) {
  return std::max<std::int64_t>(1, std::llrint(static_cast<double>(side) * from_mm / to_mm));
}

/// A step of the new grid, and the shift of its first voxel's centre.
Vec3 Stretch(Vec3& step, std::int64_t from, std::int64_t to) {
  const Vec3 old = step;
  step = step * (static_cast<double>(from) / static_cast<double>(to));
  return (step - old) * 0.5;
}

std::vector<float> FloatsOf(const Volume& volume) {
  std::vector<float> values(static_cast<std::size_t>(volume.size.Pixels()));
  if (volume.dtype == DType::kFloat32) {
    std::memcpy(values.data(), volume.voxels.data(), volume.voxels.size());
  } else {
    const auto* from = reinterpret_cast<const std::int16_t*>(volume.voxels.data());
    std::copy(from, from + values.size(), values.begin());
  }
  return values;
}

void PutFloats(const std::vector<float>& values, Volume& volume) {
  volume.voxels.resize(values.size() * SizeOf(volume.dtype));
  if (volume.dtype == DType::kFloat32) {
    std::memcpy(volume.voxels.data(), values.data(), volume.voxels.size());
    return;
  }
  auto* out = reinterpret_cast<std::int16_t*>(volume.voxels.data());
  for (const float v : values) {
    *out++ = static_cast<std::int16_t>(std::clamp(std::nearbyint(v), -32768.0f, 32767.0f));
  }
}

}  // namespace

Status ResampleTo(const SpacingMm& spacing, int order, const VolumeProgress& progress,
                  Volume& volume) {
  const Extent from = volume.size;
  const Extent to{SideAt(from.z, Norm(volume.affine.z), spacing[0]),
                  SideAt(from.y, Norm(volume.affine.y), spacing[1]),
                  SideAt(from.x, Norm(volume.affine.x), spacing[2])};
  PB_RETURN_IF_ERROR(CheckVolumeSize(to, "resample volume"));
  if (to == from) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const ops::Resample resample, ops::Resample::Make(from, to, order));
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
  PutFloats(out, volume);
  volume.size = to;
  volume.affine.origin = volume.affine.origin + Stretch(volume.affine.z, from.z, to.z) +
                         Stretch(volume.affine.y, from.y, to.y) +
                         Stretch(volume.affine.x, from.x, to.x);
  volume.slice_positions.clear();
  volume.log.push_back({{"step", "resample"},
                        {"order", order},
                        {"asked_mm", spacing},
                        {"from_shape", {from.z, from.y, from.x}}});
  return absl::OkStatus();
}

}  // namespace patchbay::workers
