#include "ops/geometry/volume_moves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

/// The farthest that any control point moves along an axis: no voxel moves farther.
double Reach(const std::vector<float>& moves) {
  double reach = 0;
  for (const float move : moves) reach = std::max(reach, std::abs(double{move}));
  return reach;
}

/// Gaussian that a step above 1 asks for, as Cardoso et al. (2015): a point spread of one voxel
/// becomes one of `step` voxels.
double SmoothOf(double step) {
  constexpr double kFullWidth = 8 * 0.6931471805599453;  // (full width at half maximum / sigma)^2
  return step > 1 ? std::sqrt((step * step - 1) / kFullWidth) : 0;
}

/// The Gaussian along an axis. Places of the nearest voxel are not averaged.
double SmoothAlong(const plan::VolumeFacts& facts, std::size_t axis) {
  const bool is_nearest = static_cast<int>(axis) == facts.nearest_axis;
  return is_nearest ? 0 : SmoothOf(ArrayOf(facts.step)[axis]);
}

std::int64_t SmoothRadius(double sigma) { return static_cast<std::int64_t>(std::ceil(3 * sigma)); }

/// The map of finished voxels into the patch's own box, about whose centre `m` turns.
struct Placed {
  VoxelMatrix m;
  std::array<double, 3> offset;
};

Placed PlaceIn(const VoxelMatrix& m, const Extent& patch, const plan::PerAxis& step) {
  const auto side = ArrayOf(patch), source = ArrayOf(plan::SourceSides(patch, step));
  const auto scale = ArrayOf(step);
  Placed placed{m, {}};
  for (std::size_t a = 0; a < 3; ++a) {
    placed.offset[a] = static_cast<double>(source[a] - 1) / 2;
    for (std::size_t b = 0; b < 3; ++b) {
      placed.m[a][b] *= scale[a];
      placed.offset[a] -= placed.m[a][b] * static_cast<double>(side[b] - 1) / 2;
    }
  }
  return placed;
}

/// Coordinates that voxels of the patch may have along an axis, each moved by up to `reach`.
void RangeAlong(const Placed& placed, std::size_t axis, const Extent& patch,
                const std::array<double, 3>& reach, double& least, double& most) {
  least = most = placed.offset[axis];
  const auto side = ArrayOf(patch);
  for (std::size_t b = 0; b < 3; ++b) {
    const double k = placed.m[axis][b], span = k * static_cast<double>(side[b] - 1);
    least += std::min(span, 0.0) - std::abs(k) * reach[b];
    most += std::max(span, 0.0) + std::abs(k) * reach[b];
  }
}

}  // namespace

VoxelMatrix Product(const VoxelMatrix& a, const VoxelMatrix& b) {
  VoxelMatrix c{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

VolumeGeometry VolumeMoves::Draw(const DrawKey& key, const plan::VolumeFacts& facts) const {
  VolumeComposition composition{patch_, facts};
  for (const Move& move : moves_) move.compose(ParameterKey(key, move.occurrence), composition);
  VolumeGeometry geometry;
  std::copy(composition.mirrored, composition.mirrored + 3, geometry.mirrored);
  geometry.field = std::move(composition.field);
  const bool between = composition.is_turned || facts.step != plan::PerAxis{};
  geometry.whole_voxels = !between && geometry.field.points == 0;
  geometry.source = WholeOf(patch_);
  if (geometry.whole_voxels) return geometry;

  VoxelMatrix& m = composition.matrix;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) m[a][b] *= geometry.mirrored[a] ? -1 : 1;
  }
  const Placed placed = PlaceIn(m, patch_, facts.step);
  const std::array<double, 3> reach = {Reach(geometry.field.moves[0]),
                                       Reach(geometry.field.moves[1]),
                                       Reach(geometry.field.moves[2])};
  std::int64_t first[3], length[3];
  for (std::size_t a = 0; a < 3; ++a) {
    constexpr double kSlack = 1e-3;  // bound on the error of places in float
    double least, most;
    RangeAlong(placed, a, patch_, reach, least, most);
    geometry.smooth[a] = SmoothAlong(facts, a);
    const std::int64_t around = SmoothRadius(geometry.smooth[a]);
    first[a] = static_cast<std::int64_t>(std::floor(least - kSlack)) - around;
    length[a] = static_cast<std::int64_t>(std::floor(most + kSlack)) + 2 + around - first[a];
    for (std::size_t b = 0; b < 3; ++b) {
      geometry.map.at[a][b] = static_cast<float>(placed.m[a][b]);
    }
    geometry.map.at[a][3] = static_cast<float>(placed.offset[a] - static_cast<double>(first[a]));
    geometry.map.last[a] = static_cast<float>(length[a] - 1);
  }
  geometry.map.nearest_axis = facts.nearest_axis;
  geometry.source = {first[0], first[1], first[2], length[0], length[1], length[2]};
  return geometry;
}

Status VolumeMoves::CheckImage(const plan::VolumeFacts& facts) const {
  VolumeReach reach;
  for (const Move& move : moves_) {
    if (move.reach) PB_RETURN_IF_ERROR(move.reach(facts, reach));
  }
  // A turn keeps a place's distance from the centre: half the patch's diagonal in millimetres.
  const auto side = ArrayOf(patch_);
  const auto mm = ArrayOf(facts.spacing), step = ArrayOf(facts.step);
  double squares = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    if (side[a] == 1) continue;
    const double half = (static_cast<double>(side[a]) / 2 + reach.moves[a]) * mm[a];
    squares += half * half;
  }
  double voxels = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    const double own = static_cast<double>(side[a]) + 2 * reach.moves[a];
    const double turned =
        reach.turns && side[a] != 1 ? 2 * std::sqrt(squares) * reach.spread / mm[a] : own;
    voxels *= turned * step[a] + 4 + 6 * SmoothAlong(facts, a);
  }
  if (voxels <= static_cast<double>(kMaxSourceVoxels)) return absl::OkStatus();
  return InvalidArgument("a patch of ", patch_.ToString(), " may need ",
                         static_cast<std::int64_t>(voxels),
                         " voxels read, turned and scaled: more than ", kMaxSourceVoxels);
}

}  // namespace patchbay::ops
