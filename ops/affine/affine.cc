#include "ops/affine/affine.h"

#include <algorithm>
#include <array>

#include "ops/draws/draws.h"
#include "ops/lanes/fixed_math.h"
#include "ops/steps/op_program.h"
#include "runtime/core/status.h"

namespace patchbay::ops {
namespace {

Status CheckPlane(const Json& options, const Extent&) {
  if (!plan::ReadOptions<AffineOptions>(options).HasOneRangeAnAxis()) return absl::OkStatus();
  return InvalidArgument("degrees: a range for each axis is for volumes; give [low, high]");
}

Status CheckVolume(const Json& options, const Extent&) {
  const auto affine = plan::ReadOptions<AffineOptions>(options);
  PB_RETURN_IF_ERROR(CheckVolumeBorder(affine.border));
  if (!affine.shear.Always(0)) return InvalidArgument("shear: for 2-D images only");
  if (affine.translate == std::array<double, 2>{}) return absl::OkStatus();
  return InvalidArgument(
      "translate: for 2-D images only; sampling.positions: random moves patches");
}

/// Turns the plane of the axes other than `axis`.
VoxelMatrix Turned(std::size_t axis, double degrees) {
  const SineAndCosine turn = FixedSinCos(degrees);
  const std::size_t first = axis == 0 ? 1 : 0, second = axis == 2 ? 1 : 2;
  VoxelMatrix m = kSameVoxels;
  m[first][first] = m[second][second] = turn.cosine;
  m[first][second] = -turn.sine;
  m[second][first] = turn.sine;
  return m;
}

/// The rotation and scaling of finished voxels that are `spacing` mm apart, about the patch's
/// centre.
VoxelMatrix MatrixOf(const VolumeRotation& turn, const plan::PerAxis& spacing) {
  VoxelMatrix m = Product(Turned(0, turn.degrees[0]),
                          Product(Turned(1, turn.degrees[1]), Turned(2, turn.degrees[2])));
  const auto mm = ArrayOf(spacing);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) m[i][j] *= mm[j] / mm[i] / turn.scale[i];
  }
  return m;
}

VolumeMoves::Move VolumeMove(const AffineOptions& options, std::uint32_t occurrence) {
  return {occurrence,
          [options](const DrawKey& key, VolumeComposition& composition) {
            const auto turn = DrawTurn(options, key, composition.patch);
            if (turn) composition.Turn(MatrixOf(*turn, composition.facts.spacing));
          },
          [least = options.scale.low](const plan::VolumeFacts&, VolumeReach& reach) {
            reach.turns = true;
            reach.spread /= std::min(1.0, least);
            return absl::OkStatus();
          }};
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const std::uint32_t occurrence = plan::Occurrence(step);
  const auto options = plan::ReadOptions<AffineOptions>(step.options);
  if (program.shape().in_depth) {
    program.volumes().Add(VolumeMove(options, occurrence));
    return absl::OkStatus();
  }
  program.images().SampleBetween(options.border);
  program.images().Add(occurrence, [options](const DrawKey& key, ImageComposition& composition) {
    composition.Map(DrawAffine(options, key, composition.height, composition.width));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<AffineOptions>> AffineOptions::Table() {
  using O = AffineOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::degrees,
                     {.name = "degrees",
                      .unit = "degrees",
                      .min = -360,
                      .max = 360,
                      .help = "angle, clockwise as displayed; for volumes one about each axis: a "
                              "range for all, or [[low, high], ...] for z, y, x"}),
      plan::OptionOf(&O::scale, {.name = "scale",
                                 .min = kMinAffineScale,
                                 .max = kMaxAffineScale,
                                 .help = "factor; larger means larger objects"}),
      plan::OptionOf(&O::shear, {.name = "shear",
                                 .unit = "degrees",
                                 .min = -kMaxShearDegrees,
                                 .max = kMaxShearDegrees,
                                 .help = "angle of shear along x; 2-D images only"}),
      plan::OptionOf(&O::translate, {.name = "translate",
                                     .min = 0,
                                     .max = 1,
                                     .help = "largest shift along y and x, as a share of the "
                                             "patch's side; 2-D images only"}),
      BorderOption<O>()};
}

plan::OpRow DescribeAffine() {
  return {
      .number = AffineOptions::kNumber,
      .keys = plan::KeysOf<AffineOptions>(
          "affine",
          "rotates, scales, shears and shifts about the centre, with linear interpolation; volumes "
          "rotate about each axis, in millimetres, and patches of one slice stay in it"),
      .compile = Compile,
      .needs = {.moves = true, .between = true, .random = true, .spacing = true},
      .axes = plan::OpAxes::kDepth,
      .acts_with = {"degrees", "scale", "shear", "translate"},
      .example = {{"p", 1}, {"degrees", {-15, 15}}, {"scale", {0.9, 1.1}}},
      .check_plane = CheckPlane,
      .check_volume = CheckVolume};
}

PlaceMap DrawAffine(const AffineOptions& options, const DrawKey& key, std::int64_t height,
                    std::int64_t width) {
  const PhiloxBlock linear = Draw(key, 0), shift = Draw(key, 1);
  if (!(UniformFloat(linear.word[0]) < options.p)) return {};
  const SineAndCosine turn = FixedSinCos(Drawn(options.degrees[0], linear.word[1]));
  const double scale = Drawn(options.scale, linear.word[2]);
  const SineAndCosine shear = FixedSinCos(Drawn(options.shear, linear.word[3]));
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const double ty = options.translate[0] * h, tx = options.translate[1] * w;
  const double to_y = (h - 1) / 2 + Drawn({-ty, ty}, shift.word[0]);
  const double to_x = (w - 1) / 2 + Drawn({-tx, tx}, shift.word[1]);
  // Forward: place = centre + shift + R S H (source - centre), with H = [[1, -tan], [0, 1]] of
  // (x, y). Backward: H^-1 S^-1 R^-1.
  const double slope = shear.sine / shear.cosine, c = turn.cosine / scale, s = turn.sine / scale;
  PlaceMap map;
  map.yy = c;
  map.yx = -s;
  map.xy = s + slope * c;
  map.xx = c - slope * s;
  map.y0 = (h - 1) / 2 - map.yy * to_y - map.yx * to_x;
  map.x0 = (w - 1) / 2 - map.xy * to_y - map.xx * to_x;
  return map;
}

std::optional<VolumeRotation> DrawTurn(const AffineOptions& options, const DrawKey& key,
                                       const Extent& patch) {
  const PhiloxBlock block = Draw(key, 0);
  if (!(UniformFloat(block.word[0]) < options.p)) return std::nullopt;
  VolumeRotation turn;
  const std::array<std::int64_t, 3> side = {patch.z, patch.y, patch.x};
  const double scale = Drawn(options.scale, Draw(key, 1).word[0]);
  for (std::size_t a = 0; a < 3; ++a) {
    const bool turns = side[(a + 1) % 3] > 1 && side[(a + 2) % 3] > 1;
    if (turns) turn.degrees[a] = Drawn(options.degrees[a], block.word[1 + a]);
    if (side[a] > 1) turn.scale[a] = scale;
  }
  return turn;
}

}  // namespace patchbay::ops
