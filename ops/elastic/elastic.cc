#include "ops/elastic/elastic.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/draws/draws.h"
#include "ops/steps/op_program.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

/// Exactly one of the two keys is given.
Status CheckAmplitudes(const Json& options) {
  if (options.contains("amplitude") != options.contains("amplitude_mm")) return absl::OkStatus();
  return InvalidArgument("expected one of amplitude (px) and amplitude_mm (volumes)");
}

Status CheckPlane(const Json& options, const Extent& patch) {
  return CheckFolding(plan::ReadOptions<ElasticOptions>(options), {std::min(patch.y, patch.x)});
}

Status CheckVolume(const Json& options, const Extent& patch) {
  const auto elastic = plan::ReadOptions<ElasticOptions>(options);
  PB_RETURN_IF_ERROR(CheckVolumeBorder(elastic.border));
  return CheckFolding(elastic, {patch.z, patch.y, patch.x});
}

/// In finished voxels of an image.
plan::PerAxis AmplitudeOf(const ElasticOptions& options, const plan::PerAxis& spacing) {
  const double mm = options.amplitude_mm, px = options.amplitude;
  if (mm == 0) return {px, px, px};
  return {mm / spacing.z, mm / spacing.y, mm / spacing.x};
}

VolumeMoves::Move VolumeMove(const ElasticOptions& options, std::uint32_t occurrence,
                             const Extent& patch) {
  return {occurrence,
          [options](const DrawKey& key, VolumeComposition& composition) {
            composition.field = DrawField(
                options, key, AmplitudeOf(options, composition.facts.spacing), composition.patch);
          },
          [options, patch](const plan::VolumeFacts& facts, VolumeReach& reach) {
            const plan::PerAxis most = AmplitudeOf(options, facts.spacing);
            reach.moves = ArrayOf(most);
            const Status folds = CheckFolding(
                options.points, {{patch.z, most.z}, {patch.y, most.y}, {patch.x, most.x}});
            return folds.ok() ? folds : InvalidArgument("elastic: ", MessageOf(folds));
          }};
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const std::uint32_t occurrence = plan::Occurrence(step);
  const auto options = plan::ReadOptions<ElasticOptions>(step.options);
  if (program.shape().in_depth) {
    program.volumes().SetPoints(options.points);
    program.volumes().Add(VolumeMove(options, occurrence, program.shape().patch));
    return absl::OkStatus();
  }
  program.images().SampleBetween(options.border);
  program.images().Add(occurrence, [options](const DrawKey& key, ImageComposition& composition) {
    composition.field = DrawElastic(options, key);
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<ElasticOptions>> ElasticOptions::Table() {
  using O = ElasticOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(
          &O::points,
          {.name = "points",
           .min = kMinElasticPoints,
           .max = kMaxElasticPoints,
           .help = "control points along each axis; the outer two at each end stay fixed"}),
      plan::AbsentOption(
          &O::amplitude,
          {.name = "amplitude",
           .unit = "px",
           .min = 0,
           .max = 4096,
           .help = "largest displacement of a control point along each axis; less than half the "
                   "distance between points"}),
      plan::AbsentOption(&O::amplitude_mm, {.name = "amplitude_mm",
                                            .unit = "mm",
                                            .min = 1e-3,
                                            .max = 4096,
                                            .help = "for volumes, instead of amplitude"}),
      BorderOption<O>()};
}

Status CheckFolding(int points, std::initializer_list<ElasticAxis> axes) {
  for (const ElasticAxis& axis : axes) {
    const double spacing = FieldSpacing(points, axis.side);
    if (axis.side == 1 || axis.amplitude == 0 || 2 * axis.amplitude < spacing) continue;
    return InvalidArgument("amplitude ", axis.amplitude, " px folds the patch: its ", points,
                           " control points are ", spacing,
                           " px apart; give less than half of that, or fewer points");
  }
  return absl::OkStatus();
}

Status CheckFolding(const ElasticOptions& options, std::initializer_list<std::int64_t> sides) {
  for (const std::int64_t side : sides) {
    PB_RETURN_IF_ERROR(CheckFolding(options.points, {{side, options.amplitude}}));
  }
  return absl::OkStatus();
}

plan::OpRow DescribeElastic() {
  plan::OpRow row = {
      .number = ElasticOptions::kNumber,
      .keys = plan::KeysOf<ElasticOptions>(
          "elastic", "deforms the patch by a cubic B-spline, with linear interpolation"),
      .compile = Compile,
      .needs = {.moves = true, .between = true, .random = true, .once = true, .spacing = true},
      .axes = plan::OpAxes::kDepth,
      .example = {{"p", 1}, {"points", 5}, {"amplitude", 2}},
      .volume_example = {{"p", 1}, {"points", 5}, {"amplitude_mm", 1}},
      .for_volumes =
          [](const Json& options) {
            return plan::ReadOptions<ElasticOptions>(options).amplitude_mm > 0;
          },
      .check_plane = CheckPlane,
      .check_volume = CheckVolume};
  row.keys.check = CheckAmplitudes;
  return row;
}

PixelField DrawElastic(const ElasticOptions& options, const DrawKey& key) {
  PixelField field;
  if (options.amplitude == 0 || !(UniformFloat(Draw(key, 0).word[0]) < options.p)) return field;
  field.points = options.points;
  DrawKey own = key;
  own.stream = DrawStream::kField;
  const DrawRange range{-options.amplitude, options.amplitude};
  constexpr int kLocked = kLockedElasticPoints;
  for (int y = kLocked; y < options.points - kLocked; ++y) {
    for (int x = kLocked; x < options.points - kLocked; ++x) {
      const auto point = static_cast<std::size_t>(y * options.points + x);
      const PhiloxBlock block = Draw(own, static_cast<std::uint32_t>(point));
      field.dy[point] = static_cast<float>(Drawn(range, block.word[0]));
      field.dx[point] = static_cast<float>(Drawn(range, block.word[1]));
    }
  }
  return field;
}

VolumeField DrawField(const ElasticOptions& options, const DrawKey& key,
                      const plan::PerAxis& amplitude, const Extent& patch) {
  VolumeField field;
  if (!(UniformFloat(Draw(key, 0).word[0]) < options.p)) return field;
  const std::array<std::int64_t, 3> sides = {patch.z, patch.y, patch.x};
  const std::array<double, 3> reach = {amplitude.z, amplitude.y, amplitude.x};
  const int n = field.points = options.points;
  for (std::size_t a = 0; a < 3; ++a) {
    field.moves[a].assign(static_cast<std::size_t>(n * n * n), 0.0f);
    if (sides[a] > 1) {
      field.inverse_spacing[a] = static_cast<float>(1 / FieldSpacing(options.points, sides[a]));
    }
  }
  DrawKey own = key;
  own.stream = DrawStream::kField;
  // An axis of one voxel has nothing to bend: all its control points draw, none is locked.
  const auto locked = [&](int at, std::size_t axis) {
    return sides[axis] > 1 && (at < kLockedElasticPoints || at >= n - kLockedElasticPoints);
  };
  for (int i = 0; i < n * n * n; ++i) {
    if (locked(i / (n * n), 0) || locked(i / n % n, 1) || locked(i % n, 2)) continue;
    const PhiloxBlock block = Draw(own, static_cast<std::uint32_t>(i));
    for (std::size_t a = 0; a < 3; ++a) {
      if (sides[a] == 1) continue;
      field.moves[a][static_cast<std::size_t>(i)] =
          static_cast<float>(Drawn({-reach[a], reach[a]}, block.word[a]));
    }
  }
  return field;
}

}  // namespace patchbay::ops
