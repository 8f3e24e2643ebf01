#include "ops/chain/volume_geometry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/lanes/fixed_math.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

constexpr Matrix kIdentity = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

/// Turns the plane of the axes other than `axis`.
Matrix Turned(std::size_t axis, double degrees) {
  const SineAndCosine turn = FixedSinCos(degrees);
  const std::size_t first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;
  Matrix m = kIdentity;
  m[first][first] = m[second][second] = turn.cosine;
  m[first][second] = -turn.sine;
  m[second][first] = turn.sine;
  return m;
}

std::array<double, 3> ArrayOf(const plan::PerAxis& v) { return {v.z, v.y, v.x}; }
std::array<std::int64_t, 3> ArrayOf(const Extent& e) { return {e.z, e.y, e.x}; }

/// The rotation and scaling of finished voxels that are `spacing` mm apart, about the patch's
/// centre.
Matrix MatrixOf(const VolumeTurn& turn, const plan::PerAxis& spacing) {
  Matrix m = Product(Turned(0, turn.degrees[0]),
                     Product(Turned(1, turn.degrees[1]), Turned(2, turn.degrees[2])));
  const auto mm = ArrayOf(spacing);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) m[i][j] *= mm[j] / mm[i] / turn.scale[i];
  }
  return m;
}

DrawKey KeyOf(const DrawKey& key, std::uint32_t occurrence) {
  DrawKey own = key;
  own.op_occurrence = occurrence;
  own.stream = DrawStream::kParameters;
  return own;
}

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

std::int64_t SmoothRadius(double sigma) { return static_cast<std::int64_t>(std::ceil(3 * sigma)); }

/// The map of finished voxels into the patch's own box, about whose centre `m` turns.
struct Placed {
  Matrix m;
  std::array<double, 3> offset;
};

Placed PlaceIn(const Matrix& m, const Extent& patch, const plan::PerAxis& step) {
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

void VolumeMoves::Add(const plan::OpStep& step) {
  const std::uint32_t occurrence = plan::Occurrence(step);
  if (step.op->number == FlipOptions::kNumber) {
    flips_.push_back({occurrence, plan::ReadOptions<FlipOptions>(step.options)});
  } else if (step.op->number == AffineOptions::kNumber) {
    affines_.push_back({occurrence, plan::ReadOptions<AffineOptions>(step.options)});
  } else {
    elastic_ = {occurrence, plan::ReadOptions<ElasticOptions>(step.options)};
  }
}

plan::PerAxis VolumeMoves::AmplitudeOf(const plan::VolumeFacts& facts) const {
  if (!elastic_) return {0, 0, 0};
  const double mm = elastic_->options.amplitude_mm, px = elastic_->options.amplitude;
  if (mm == 0) return {px, px, px};
  return {mm / facts.spacing.z, mm / facts.spacing.y, mm / facts.spacing.x};
}

VolumeGeometry VolumeMoves::Draw(const DrawKey& key, const plan::VolumeFacts& facts) const {
  VolumeGeometry geometry;
  for (const auto& flip : flips_) {
    DrawMirrors(flip.options, KeyOf(key, flip.occurrence), geometry.mirrored);
  }
  Matrix m = kIdentity;
  bool between = facts.step != plan::PerAxis{};
  for (const auto& affine : affines_) {
    const auto turn = DrawTurn(affine.options, KeyOf(key, affine.occurrence), patch_);
    if (turn) m = Product(m, MatrixOf(*turn, facts.spacing));
    between = between || (turn && m != kIdentity);
  }
  if (elastic_) {
    geometry.field =
        DrawField(elastic_->options, KeyOf(key, elastic_->occurrence), AmplitudeOf(facts), patch_);
  }
  geometry.whole_voxels = !between && geometry.field.points == 0;
  geometry.source = WholeOf(patch_);
  if (geometry.whole_voxels) return geometry;

  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) m[a][b] *= geometry.mirrored[a] ? -1 : 1;
  }
  const Placed placed = PlaceIn(m, patch_, facts.step);
  const auto step = ArrayOf(facts.step);
  const std::array<double, 3> reach = {Reach(geometry.field.moves[0]),
                                       Reach(geometry.field.moves[1]),
                                       Reach(geometry.field.moves[2])};
  std::int64_t first[3], length[3];
  for (std::size_t a = 0; a < 3; ++a) {
    constexpr double kSlack = 1e-3;  // of what places lose in float
    double least, most;
    RangeAlong(placed, a, patch_, reach, least, most);
    geometry.smooth[a] = SmoothOf(step[a]);
    const std::int64_t around = SmoothRadius(geometry.smooth[a]);
    first[a] = static_cast<std::int64_t>(std::floor(least - kSlack)) - around;
    length[a] = static_cast<std::int64_t>(std::floor(most + kSlack)) + 2 + around - first[a];
    for (std::size_t b = 0; b < 3; ++b) {
      geometry.map.at[a][b] = static_cast<float>(placed.m[a][b]);
    }
    geometry.map.at[a][3] = static_cast<float>(placed.offset[a] - static_cast<double>(first[a]));
    geometry.map.last[a] = static_cast<float>(length[a] - 1);
  }
  geometry.source = {first[0], first[1], first[2], length[0], length[1], length[2]};
  return geometry;
}

Status VolumeMoves::CheckImage(const plan::VolumeFacts& facts) const {
  const auto amplitude = AmplitudeOf(facts);
  if (elastic_) {
    const Status folds =
        CheckFolding(elastic_->options.points,
                     {{patch_.z, amplitude.z}, {patch_.y, amplitude.y}, {patch_.x, amplitude.x}});
    if (!folds.ok()) return absl::InvalidArgumentError(StrCat("elastic: ", MessageOf(folds)));
  }
  // A turn keeps a place's distance from the centre: half the patch's diagonal in millimetres.
  const auto side = ArrayOf(patch_);
  const auto mm = ArrayOf(facts.spacing), step = ArrayOf(facts.step), reach = ArrayOf(amplitude);
  double squares = 0, shrink = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    if (side[a] == 1) continue;
    const double half = (static_cast<double>(side[a]) / 2 + reach[a]) * mm[a];
    squares += half * half;
  }
  for (const auto& affine : affines_) shrink /= std::min(1.0, affine.options.scale.low);
  double voxels = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    const double own = static_cast<double>(side[a]) + 2 * reach[a];
    const double turned =
        affines_.empty() || side[a] == 1 ? own : 2 * std::sqrt(squares) * shrink / mm[a];
    voxels *= turned * step[a] + 4 + 6 * SmoothOf(step[a]);
  }
  if (voxels <= static_cast<double>(kMaxSourceVoxels)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("a patch of ", patch_.ToString(), " may need ", static_cast<std::int64_t>(voxels),
             " voxels read, turned and scaled: more than ", kMaxSourceVoxels));
}

}  // namespace patchbay::ops
