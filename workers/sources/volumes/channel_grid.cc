#include "workers/sources/volumes/channel_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr double kSamePlace = 1e-3;  ///< in voxels

/// From the voxels of one grid to those of another.
struct GridMap {
  Vec3 begin, x, y, z;

  GridMap(const Affine& from, const Affine& to) {
    const VoxelOfPlace voxel(to);
    begin = voxel(from.origin);
    x = voxel(from.origin + from.x) - begin;
    y = voxel(from.origin + from.y) - begin;
    z = voxel(from.origin + from.z) - begin;
  }
  Vec3 At(double i, double j, double k) const { return begin + x * i + y * j + z * k; }
};

std::array<Vec3, 8> CornersOf(const Volume& volume) {
  std::array<Vec3, 8> corners;
  const auto end = [](bool is_last, std::int64_t side) {
    return is_last ? static_cast<double>(side) - 0.5 : -0.5;
  };
  for (unsigned i = 0; i < corners.size(); ++i) {
    corners[i] =
        volume.affine.At(end((i & 1) != 0, volume.size.x), end((i & 2) != 0, volume.size.y),
                         end((i & 4) != 0, volume.size.z));
  }
  return corners;
}

double FarthestFrom(const std::array<Vec3, 8>& others, const std::array<Vec3, 8>& corners) {
  double farthest = 0;
  for (const Vec3& corner : corners) {
    double nearest = std::numeric_limits<double>::max();
    for (const Vec3& other : others) nearest = std::min(nearest, Norm(corner - other));
    farthest = std::max(farthest, nearest);
  }
  return farthest;
}

double LargestSideMm(const Volume& volume) {
  const Affine& a = volume.affine;
  return std::max({Norm(a.x), Norm(a.y), Norm(a.z)});
}

/// Neither states one, or they share one.
bool MayShareFrame(const Volume& first, const Volume& channel) {
  const std::vector<std::string>& own = channel.identity.frames_of_reference;
  const std::vector<std::string>& known = first.identity.frames_of_reference;
  return own.empty() || known.empty() ||
         std::find_first_of(own.begin(), own.end(), known.begin(), known.end()) != own.end();
}

/// To a hundredth of a millimetre.
double RoundedMm(double mm) { return std::round(mm * 100) / 100; }

/// The two voxels around a place along one axis, and the second one's weight.
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

bool IsWithin(double at, std::int64_t side) {
  return at >= -0.5 && at <= static_cast<double>(side) - 0.5;
}

template <typename T>
class Sampler {
 public:
  explicit Sampler(const Volume& volume)
      : size_(volume.size), values_(reinterpret_cast<const T*>(volume.voxels.data())) {}

  bool Covers(const Vec3& at) const {
    return IsWithin(at.x, size_.x) && IsWithin(at.y, size_.y) && IsWithin(at.z, size_.z);
  }

  double At(const Vec3& at) const {
    const Between z(at.z, size_.z), y(at.y, size_.y), x(at.x, size_.x);
    const auto row = [&](std::int64_t k, std::int64_t j) {
      const T* begin = values_ + (k * size_.y + j) * size_.x;
      return Mix(begin[x.low], begin[x.high], x.weight);
    };
    const double low = Mix(row(z.low, y.low), row(z.low, y.high), y.weight);
    const double high = Mix(row(z.high, y.low), row(z.high, y.high), y.weight);
    return Mix(low, high, z.weight);
  }

 private:
  static double Mix(double a, double b, double weight) { return a + (b - a) * weight; }

  const Extent size_;
  const T* values_;
};

template <typename T>
T Stored(double value) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(value);
  return static_cast<T>(std::clamp(std::nearbyint(value), -32768.0, 32767.0));
}

template <typename T>
Status Fill(const Volume& from, double outside, const VolumeProgress& progress, Volume& to) {
  const GridMap map(to.affine, from.affine);
  const Sampler<T> sampler(from);
  T* out = reinterpret_cast<T*>(to.voxels.data());
  for (std::int64_t z = 0; z < to.size.z; ++z) {
    for (std::int64_t y = 0; y < to.size.y; ++y) {
      for (std::int64_t x = 0; x < to.size.x; ++x) {
        const Vec3 at =
            map.At(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
        *out++ = Stored<T>(sampler.Covers(at) ? sampler.At(at) : outside);
      }
    }
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  return absl::OkStatus();
}

}  // namespace

bool IsSameGrid(const Volume& first, const Volume& channel) {
  if (first.size != channel.size) return false;
  const GridMap map(first.affine, channel.affine);
  for (unsigned i = 0; i < 8; ++i) {
    const auto end = [i](unsigned bit, std::int64_t side) {
      return (i & bit) != 0 ? static_cast<double>(side - 1) : 0.0;
    };
    const Vec3 own{end(1, first.size.x), end(2, first.size.y), end(4, first.size.z)};
    if (!(Norm(map.At(own.x, own.y, own.z) - own) <= kSamePlace)) return false;
  }
  return true;
}

double CornersApartMm(const Volume& first, const Volume& channel) {
  const auto ours = CornersOf(first), theirs = CornersOf(channel);
  return std::max(FarthestFrom(ours, theirs), FarthestFrom(theirs, ours));
}

Status CheckSamePlace(const Volume& first, const Repairs& rules, Volume& channel) {
  const std::string& patient = channel.identity.patient;
  if (!patient.empty() && !first.identity.patient.empty() && patient != first.identity.patient) {
    return FailedPrecondition("it is of another patient than the first channel");
  }
  std::string found;
  if (!MayShareFrame(first, channel)) {
    found = "its frame of reference is another than the first channel's";
  }
  const double apart_mm = CornersApartMm(first, channel);
  const double voxel_mm = std::max(LargestSideMm(first), LargestSideMm(channel));
  if (!(apart_mm <= voxel_mm)) {
    found += StrCat(found.empty() ? "its" : ", and its", " corners lie up to ", RoundedMm(apart_mm),
                    " mm from those of the first channel, more than a voxel (", RoundedMm(voxel_mm),
                    " mm)");
  }
  if (found.empty()) return absl::OkStatus();
  const std::string_view rule = NameOf(Repair::kChannelGrid);
  if (!rules.contains(Repair::kChannelGrid)) {
    return FailedPrecondition(found, " (--repair ", rule, " takes it by its place all the same)");
  }
  channel.log.push_back({{"step", "repair"}, {"rule", rule}, {"what", found}});
  channel.warnings.push_back(StrCat("repaired (", rule, "): ", found));
  return absl::OkStatus();
}

Status ResampleOnto(const Volume& first, double outside, const VolumeProgress& progress,
                    Volume& channel) {
  if (IsSameGrid(first, channel)) {
    channel.affine = first.affine;
    return absl::OkStatus();
  }
  Volume moved;
  moved.size = first.size;
  moved.dtype = channel.dtype;
  moved.affine = first.affine;
  PB_RETURN_IF_ERROR(AllocateVoxels(moved));
  PB_RETURN_IF_ERROR(channel.dtype == DType::kFloat32
                         ? Fill<float>(channel, outside, progress, moved)
                         : Fill<std::int16_t>(channel, outside, progress, moved));
  channel.log.push_back({{"step", "resample onto the first channel"},
                         {"order", 1},
                         {"outside", outside},
                         {"from_shape", {channel.size.z, channel.size.y, channel.size.x}},
                         {"from_affine_lps", ToJson(LpsOf(channel.affine))}});
  channel.voxels = std::move(moved.voxels);
  channel.size = first.size;
  channel.affine = first.affine;
  channel.slice_positions.clear();
  return absl::OkStatus();
}

}  // namespace patchbay::workers
