#include "workers/jobs/synth/abdomen.h"

#include <algorithm>

namespace patchbay::workers {
namespace {

/// Half the field of view; places are measured from its centre.
constexpr std::int64_t kRadius = 4096;
constexpr int kOutside = -1024, kAir = -1000, kGas = -850, kFat = -105, kMuscle = 52;

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A place along an axis of `side` pixels, -kRadius to kRadius.
std::int64_t Scaled(std::int64_t at, std::int64_t side) {
  return (2 * at + 1) * kRadius / side - kRadius;
}

struct Ellipsoid {
  std::int64_t z, y, x;     ///< centre
  std::int64_t rz, ry, rx;  ///< radii
  int hu;

  /// The square of the distance from the centre, 1024 on the surface.
  std::int64_t Distance(std::int64_t at_z, std::int64_t at_y, std::int64_t at_x) const {
    const std::int64_t dz = (at_z - z) * 1024 / rz, dy = (at_y - y) * 1024 / ry,
                       dx = (at_x - x) * 1024 / rx;
    return (dz * dz + dy * dy + dx * dx) / 1024;
  }
};

/// Later ones lie before earlier ones.
constexpr Ellipsoid kOrgans[] = {
    {900, -300, -1500, 3600, 1500, 1300, 108},  // liver
    {600, 300, 2150, 1800, 900, 620, 118},      // spleen
    {-900, 850, -1450, 1600, 520, 430, 185},    // right kidney
    {-600, 850, 1450, 1600, 520, 430, 185},     // left kidney
    {-600, 850, 1420, 900, 260, 190, 95},       // its medulla
    {0, 560, 210, 100000, 230, 230, 165},       // aorta
    {0, 500, -330, 100000, 240, 280, 130},      // vena cava
    {300, -1050, 700, 900, 560, 900, 24},       // stomach
};
/// Where lesions may lie, and how large they are.
constexpr int kTumours = 3, kPolyps = 5;
constexpr int kTumourHu = -25, kPolypHu = 220;
constexpr Ellipsoid kSpine{0, 1350, 0, 100000, 560, 640, 190};
/// Bowel loops lie on a coarse grid of cells; some hold gas.
constexpr std::int64_t kCell = 700;

}  // namespace

int AbdomenField::TissueAt(std::int64_t z, std::int64_t y, std::int64_t x) const {
  // The body widens towards the middle of the volume.
  const std::int64_t waist = 3600 - z * z / (kRadius * 16);
  const Ellipsoid skin{0, 0, 0, 100000000, waist * 7 / 10, waist, 0};
  const Ellipsoid wall{0, 0, 0, 100000000, waist * 7 / 10 - 330, waist - 420, 0};
  if (skin.Distance(0, y, x) > 1024) return kAir;
  if (wall.Distance(0, y, x) > 1024) return kFat;
  int hu = wall.Distance(0, y, x) > 850 ? kMuscle : kFat + 12;
  if (y < 300 && y > -1900 && x > -900) {
    const std::int64_t cz = (z + kRadius) / kCell, cy = (y + kRadius) / kCell,
                       cx = (x + kRadius) / kCell;
    const std::uint64_t cell = Mix(seed_ ^ static_cast<std::uint64_t>((cz * 64 + cy) * 64 + cx));
    const Ellipsoid loop{cz * kCell + kCell / 2 - kRadius,
                         cy * kCell + kCell / 2 - kRadius,
                         cx * kCell + kCell / 2 - kRadius,
                         330,
                         320,
                         320,
                         38};
    const std::int64_t distance = loop.Distance(z, y, x);
    if (distance <= 1024) hu = loop.hu;
    if (distance <= 600 && cell % 3 == 0) hu = kGas;
  }
  for (const Ellipsoid& organ : kOrgans) {
    if (organ.Distance(z, y, x) <= 1024) hu = organ.hu;
  }
  const std::int64_t spine = kSpine.Distance(z, y, x);
  if (spine <= 1024) hu = spine > 780 ? 720 : kSpine.hu;
  const Lesion lesion = LesionOf(z, y, x);
  if (lesion == Lesion::kTumour) hu = kTumourHu;
  if (lesion == Lesion::kPolyp) hu = kPolypHu;
  return hu;
}

/// Tumours within the liver's ellipsoid, polyps in front of the spine.
AbdomenField::Lesion AbdomenField::LesionOf(std::int64_t z, std::int64_t y, std::int64_t x) const {
  if (!has_lesions_) return Lesion::kNone;
  const auto between = [](std::uint64_t bits, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(high - low));
  };
  for (int i = 0; i < kTumours + kPolyps; ++i) {
    const std::uint64_t bits = Mix(seed_ * 0x51ed2701u + static_cast<std::uint64_t>(i));
    const bool is_polyp = i >= kTumours;
    const std::int64_t r = is_polyp ? between(bits >> 48, 300, 460) : between(bits >> 48, 330, 620);
    const Ellipsoid one = is_polyp ? Ellipsoid{between(bits, -2600, 2600),
                                               between(bits >> 16, -1500, 0),
                                               between(bits >> 32, -700, 700),
                                               2 * r,
                                               r,
                                               r,
                                               kPolypHu}
                                   : Ellipsoid{between(bits, -1000, 2600),
                                               between(bits >> 16, -900, 300),
                                               between(bits >> 32, -2000, -1000),
                                               2 * r,
                                               r,
                                               r,
                                               kTumourHu};
    if (one.Distance(z, y, x) <= 1024) return is_polyp ? Lesion::kPolyp : Lesion::kTumour;
  }
  return Lesion::kNone;
}

AbdomenField::Lesion AbdomenField::LesionAt(const Point& at) const {
  return LesionOf(Scaled(at.z, volume_.z), Scaled(at.y, volume_.y), Scaled(at.x, volume_.x));
}

/// Bell-shaped, about 12 HU wide.
int AbdomenField::NoiseAt(const Point& at) const {
  const auto index = static_cast<std::uint64_t>(IndexOf(volume_, at));
  const std::uint64_t bits = Mix(seed_ * 0x100000001b3u ^ index);
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int>(bits >> (16 * i) & 31);
  return (sum - 62) * 2 / 3;
}

std::int16_t AbdomenField::At(const Point& at) const {
  const std::int64_t z = Scaled(at.z, volume_.z), y = Scaled(at.y, volume_.y),
                     x = Scaled(at.x, volume_.x);
  if (y * y + x * x > kRadius * kRadius) return kOutside;
  const int hu = TissueAt(z, y, x) + NoiseAt(at);
  return static_cast<std::int16_t>(std::clamp(hu, -1024, 3071));
}

}  // namespace patchbay::workers
