#include "ops/hed_jitter/hed_jitter.h"

#include <span>

#include "ops/colour/densities.h"

namespace patchbay::ops {
namespace {

/// Rows: the colours of haematoxylin, eosin and DAB (Ruifrok and Johnston 2001), in natural OD.
constexpr Matrix3 kHed = {{{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}, {0.27, 0.57, 0.78}}};

Vector3 Cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector3 Scaled(const Vector3& v, double factor) {
  return {v[0] * factor, v[1] * factor, v[2] * factor};
}

/// Row s of the result gives the amount of the stain of row s of `stains` in a density.
Matrix3 Unmixing(const Matrix3& stains) {
  const Vector3 a = Cross(stains[1], stains[2]), b = Cross(stains[2], stains[0]),
                c = Cross(stains[0], stains[1]);
  const double inverse = 1 / Dot(stains[0], a);
  return {Scaled(a, inverse), Scaled(b, inverse), Scaled(c, inverse)};
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  Densities::Of(program).Add([occurrence = plan::Occurrence(step),
                              options = plan::ReadOptions<HedJitterOptions>(step.options)](
                                 const PatchDraw& draw, const plan::MacenkoFit& /*basis*/) {
    return DrawHedJitter(options, draw.KeyOf(occurrence));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<HedJitterOptions>> HedJitterOptions::Table() {
  using O = HedJitterOptions;
  return {ProbabilityOption<O>(), AlphaOption<O>(), BetaOption<O>(),
          plan::OptionOf(&O::dab, {.name = "stains",
                                   .choices = {"hed", "he"},
                                   .help = "all three, or haematoxylin and eosin alone"})};
}

plan::OpRow DescribeHedJitter() {
  return {
      .number = HedJitterOptions::kNumber,
      .keys = plan::KeysOf<HedJitterOptions>(
          "hed_jitter", "scales and shifts haematoxylin, eosin and DAB in natural optical density"),
      .compile = Compile,
      .needs = {.rgb = true, .random = true},
      .axes = plan::OpAxes::kPlane,
      .images = {kIntensities.begin(), kIntensities.end()},
      .example = {{"p", 1}}};
}

OdStep DrawHedJitter(const HedJitterOptions& options, const DrawKey& key) {
  return DrawStains({options.p, options.alpha, options.beta},
                    std::span(kHed).first(options.dab ? 3 : 2), Unmixing(kHed), key);
}

}  // namespace patchbay::ops
