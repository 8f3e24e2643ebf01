#include "workers/jobs/labels/volume_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace patchbay::workers {
namespace {

/// In voxels: two grids with no larger offset have their voxels at the same places.
constexpr double kAligned = 0.01;

bool IsNearWhole(const Vec3& v) {
  const auto off = [](double x) { return std::abs(x - std::round(x)); };
  return std::max({off(v.x), off(v.y), off(v.z)}) <= kAligned;
}

/// Places of the image's voxels in voxels of the mask.
class GridMap {
 public:
  GridMap(const VoxelGrid& mask, const VoxelGrid& image) : size_(mask.size) {
    const VoxelOfPlace voxel(mask.affine);
    const Affine& a = image.affine;
    begin_ = voxel(a.origin);
    x_ = voxel(a.origin + a.x) - begin_;
    y_ = voxel(a.origin + a.y) - begin_;
    z_ = voxel(a.origin + a.z) - begin_;
    const auto last = [](std::int64_t side) { return static_cast<double>(side - 1); };
    const std::array<double, 3> ends = {last(image.size.x), last(image.size.y), last(image.size.z)};
    is_aligned_ = IsNearWhole(x_) && IsNearWhole(y_) && IsNearWhole(z_);
    for (int corner = 0; corner < 8; ++corner) {
      const auto end = [&](std::size_t axis) { return (corner >> axis & 1) != 0 ? ends[axis] : 0; };
      is_aligned_ = is_aligned_ && IsNearWhole(At(end(0), end(1), end(2)));
    }
  }

  bool is_aligned() const { return is_aligned_; }
  Vec3 At(double x, double y, double z) const { return begin_ + x_ * x + y_ * y + z_ * z; }
  /// `margin`: how far outside still counts, in voxels.
  bool Covers(const Vec3& at, double margin = 0) const {
    const auto within = [margin](double v, std::int64_t side) {
      return v >= -0.5 - margin && v < static_cast<double>(side) - 0.5 + margin;
    };
    return within(at.x, size_.x) && within(at.y, size_.y) && within(at.z, size_.z);
  }

 private:
  Extent size_;
  Vec3 begin_, x_, y_, z_;
  bool is_aligned_ = false;
};

/// The two samples around a place along one axis, clamped to the mask, and the second one's weight.
struct Between {
  std::int64_t low = 0, high = 0;
  double weight = 0;

  Between(double at, std::int64_t side) {
    const double floor = std::floor(at);
    weight = at - floor;
    low = std::clamp<std::int64_t>(static_cast<std::int64_t>(floor), 0, side - 1);
    high = std::clamp<std::int64_t>(static_cast<std::int64_t>(floor) + 1, 0, side - 1);
  }
};

std::uint8_t NearestAt(std::span<const std::uint8_t> values, const Extent& size, const Vec3& at) {
  const Point place{static_cast<std::int64_t>(std::floor(at.z + 0.5)),
                    static_cast<std::int64_t>(std::floor(at.y + 0.5)),
                    static_cast<std::int64_t>(std::floor(at.x + 0.5))};
  return values[static_cast<std::size_t>(IndexOf(size, place))];
}

/// The value with the most weight among the eight around a place.
std::uint8_t HeaviestAt(std::span<const std::uint8_t> values, const Extent& size, const Vec3& at) {
  const Between z(at.z, size.z), y(at.y, size.y), x(at.x, size.x);
  std::array<std::uint8_t, 8> value{};
  std::array<double, 8> weight{};
  for (unsigned i = 0; i < 8; ++i) {
    const bool up = (i & 4) != 0, down = (i & 2) != 0, right = (i & 1) != 0;
    const Point place{up ? z.high : z.low, down ? y.high : y.low, right ? x.high : x.low};
    value[i] = values[static_cast<std::size_t>(IndexOf(size, place))];
    weight[i] = (up ? z.weight : 1 - z.weight) * (down ? y.weight : 1 - y.weight) *
                (right ? x.weight : 1 - x.weight);
  }
  std::uint8_t best = value[0];
  double most = -1;
  for (unsigned i = 0; i < 8; ++i) {
    double sum = 0;
    for (unsigned k = 0; k < 8; ++k) sum += value[k] == value[i] ? weight[k] : 0;
    if (sum > most || (sum == most && value[i] < best)) {
      most = sum;
      best = value[i];
    }
  }
  return best;
}

}  // namespace

StatusOr<std::vector<std::uint8_t>> OntoGrid(std::span<const std::uint8_t> values,
                                             const VoxelGrid& mask, const VoxelGrid& image,
                                             std::uint8_t outside, const VolumeProgress& progress,
                                             GridFit& fit) {
  const GridMap map(mask, image);
  fit = {.is_aligned = map.is_aligned(), .covered = 0};
  std::vector<std::uint8_t> out(static_cast<std::size_t>(image.size.Pixels()), outside);
  std::uint8_t* to = out.data();
  for (std::int64_t z = 0; z < image.size.z; ++z) {
    for (std::int64_t y = 0; y < image.size.y; ++y) {
      for (std::int64_t x = 0; x < image.size.x; ++x, ++to) {
        const Vec3 at =
            map.At(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
        if (!map.Covers(at)) continue;
        ++fit.covered;
        *to = fit.is_aligned ? NearestAt(values, mask.size, at) : HeaviestAt(values, mask.size, at);
      }
    }
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  return out;
}

StatusOr<std::array<std::uint64_t, 256>> CountOutside(std::span<const std::uint8_t> values,
                                                      const VoxelGrid& mask, const VoxelGrid& image,
                                                      const VolumeProgress& progress) {
  const GridMap map(image, mask);
  std::array<std::uint64_t, 256> outside{};
  const std::uint8_t* at = values.data();
  for (std::int64_t z = 0; z < mask.size.z; ++z) {
    for (std::int64_t y = 0; y < mask.size.y; ++y) {
      for (std::int64_t x = 0; x < mask.size.x; ++x, ++at) {
        const Vec3 place =
            map.At(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
        if (!map.Covers(place, kAligned)) ++outside[*at];
      }
    }
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  return outside;
}

}  // namespace patchbay::workers
