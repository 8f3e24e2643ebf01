#include "workers/sources/volumes/voxel_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace patchbay::workers {

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

void MakeFloat(Volume& volume) {
  if (volume.dtype == DType::kFloat32) return;
  const std::vector<float> values = FloatsOf(volume);
  const auto bytes = std::as_bytes(std::span(values));
  volume.dtype = DType::kFloat32;
  volume.voxels.assign(bytes.begin(), bytes.end());
}

std::int16_t NearestInt16(float value) {
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(value), -32768.0f, 32767.0f));
}

}  // namespace patchbay::workers
