#include "workers/sources/volumes/even_slices.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr float kOutsideHu = -1024;

/// A slice's shift across the stack, in pixels.
struct Shift {
  double y = 0, x = 0;
};

struct Margins {
  std::int64_t before_y = 0, after_y = 0, before_x = 0, after_x = 0;
};

std::int64_t Up(double value) { return static_cast<std::int64_t>(std::ceil(value - 1e-6)); }

Margins MarginsOf(const std::vector<Shift>& shifts) {
  Margins m;
  for (const Shift& s : shifts) {
    m.before_y = std::max(m.before_y, Up(-s.y));
    m.after_y = std::max(m.after_y, Up(s.y));
    m.before_x = std::max(m.before_x, Up(-s.x));
    m.after_x = std::max(m.after_x, Up(s.x));
  }
  return m;
}

float ValueAt(const Volume& volume, std::int64_t z, std::int64_t y, std::int64_t x) {
  if (y < 0 || x < 0 || y >= volume.size.y || x >= volume.size.x) return kOutsideHu;
  const auto i = static_cast<std::size_t>((z * volume.size.y + y) * volume.size.x + x);
  if (volume.dtype == DType::kInt16) {
    return reinterpret_cast<const std::int16_t*>(volume.voxels.data())[i];
  }
  return reinterpret_cast<const float*>(volume.voxels.data())[i];
}

/// Slice z of the volume moved by its shift onto the grown plane.
void MoveSlice(const Volume& volume, std::int64_t z, const Shift& shift, const Margins& m,
               const Extent& plane, std::vector<float>& out) {
  const double from_y = -static_cast<double>(m.before_y) - shift.y,
               from_x = -static_cast<double>(m.before_x) - shift.x;
  const double floor_y = std::floor(from_y), floor_x = std::floor(from_x);
  const auto wy = static_cast<float>(from_y - floor_y), wx = static_cast<float>(from_x - floor_x);
  const auto begin_y = static_cast<std::int64_t>(floor_y),
             begin_x = static_cast<std::int64_t>(floor_x);
  for (std::int64_t y = 0; y < plane.y; ++y) {
    for (std::int64_t x = 0; x < plane.x; ++x) {
      const std::int64_t sy = begin_y + y, sx = begin_x + x;
      float value = ValueAt(volume, z, sy, sx);
      if (wx > 0) value += wx * (ValueAt(volume, z, sy, sx + 1) - value);
      if (wy > 0) {
        float below = ValueAt(volume, z, sy + 1, sx);
        if (wx > 0) below += wx * (ValueAt(volume, z, sy + 1, sx + 1) - below);
        value += wy * (below - value);
      }
      out[static_cast<std::size_t>(y * plane.x + x)] = value;
    }
  }
}

void PutSlice(Volume& to, std::int64_t z, const std::vector<float>& values) {
  const std::size_t begin = static_cast<std::size_t>(z) * values.size();
  if (to.dtype == DType::kFloat32) {
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(to.voxels.data()) + begin);
    return;
  }
  auto* out = reinterpret_cast<std::int16_t*>(to.voxels.data()) + begin;
  for (const float v : values) {
    *out++ = static_cast<std::int16_t>(std::clamp(std::nearbyint(v), -32768.0f, 32767.0f));
  }
}

/// The moved slices around the one that is made, two at a time.
class MovedSlices {
 public:
  MovedSlices(const Volume& volume, const std::vector<Shift>& shifts, const Margins& margins,
              const Extent& plane)
      : volume_(volume), shifts_(shifts), margins_(margins), plane_(plane) {
    for (auto& slice : held_) slice.resize(static_cast<std::size_t>(plane.y * plane.x));
  }
  const std::vector<float>& At(std::size_t k) {
    std::vector<float>& slice = held_[k % 2];
    if (number_[k % 2] != static_cast<std::int64_t>(k)) {
      MoveSlice(volume_, static_cast<std::int64_t>(k), shifts_[k], margins_, plane_, slice);
      number_[k % 2] = static_cast<std::int64_t>(k);
    }
    return slice;
  }

 private:
  const Volume& volume_;
  const std::vector<Shift>& shifts_;
  const Margins& margins_;
  const Extent& plane_;
  std::vector<float> held_[2];
  std::int64_t number_[2] = {-1, -1};
};

}  // namespace

Status MakeEven(Volume& volume, const std::vector<double>& places, double step_mm) {
  const Vec3 row = volume.affine.x * (1 / Norm(volume.affine.x)),
             column = volume.affine.y * (1 / Norm(volume.affine.y));
  const Vec3 normal = Cross(row, column);
  const Vec3 first = volume.slice_positions.front();
  std::vector<Shift> shifts;
  for (const Vec3& position : volume.slice_positions) {
    shifts.push_back({Dot(position - first, column) / Norm(volume.affine.y),
                      Dot(position - first, row) / Norm(volume.affine.x)});
  }
  const Margins margins = MarginsOf(shifts);
  Volume even;
  even.dtype = volume.dtype;
  even.size.z = std::llround((places.back() - places.front()) / step_mm) + 1;
  even.size.y = volume.size.y + margins.before_y + margins.after_y;
  even.size.x = volume.size.x + margins.before_x + margins.after_x;
  PB_RETURN_IF_ERROR(CheckVolumeSize(even.size, "resample slices"));
  PB_RETURN_IF_ERROR(AllocateVoxels(even));
  const Extent plane{1, even.size.y, even.size.x};
  MovedSlices moved(volume, shifts, margins, plane);
  std::vector<float> values(static_cast<std::size_t>(plane.y * plane.x));
  std::size_t below = 0;
  for (std::int64_t z = 0; z < even.size.z; ++z) {
    const double at = places.front() + static_cast<double>(z) * step_mm;
    while (below + 2 < places.size() && places[below + 1] <= at) ++below;
    const double weight =
        std::clamp((at - places[below]) / (places[below + 1] - places[below]), 0.0, 1.0);
    const std::vector<float>&a = moved.At(below), &b = moved.At(below + 1);
    const auto w = static_cast<float>(weight);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = a[i] + w * (b[i] - a[i]);
    PutSlice(even, z, values);
  }
  volume.voxels = std::move(even.voxels);
  volume.size = even.size;
  volume.affine.z = normal * step_mm;
  volume.affine.origin = first - volume.affine.y * static_cast<double>(margins.before_y) -
                         volume.affine.x * static_cast<double>(margins.before_x);
  volume.slice_positions.clear();
  for (std::int64_t z = 0; z < volume.size.z; ++z) {
    volume.slice_positions.push_back(volume.affine.At(0, 0, static_cast<double>(z)));
  }
  volume.log.push_back({{"step", "resample slices"},
                        {"order", 1},
                        {"step_mm", step_mm},
                        {"rows_added", margins.before_y + margins.after_y},
                        {"columns_added", margins.before_x + margins.after_x}});
  return absl::OkStatus();
}

}  // namespace patchbay::workers
