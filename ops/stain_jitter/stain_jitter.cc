#include "ops/stain_jitter/stain_jitter.h"

#include "ops/colour/densities.h"

namespace patchbay::ops {

std::vector<plan::Option<StainJitterOptions>> StainJitterOptions::Table() {
  using O = StainJitterOptions;
  return {ProbabilityOption<O>(), AlphaOption<O>(), BetaOption<O>()};
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  Densities::Of(program).Add([occurrence = plan::Occurrence(step),
                              options = plan::ReadOptions<StainJitterOptions>(step.options)](
                                 const PatchDraw& draw, const plan::MacenkoFit& basis) {
    return DrawStainJitter(options, basis, draw.KeyOf(occurrence));
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeStainJitter() {
  return {.number = StainJitterOptions::kNumber,
          .keys = plan::KeysOf<StainJitterOptions>(
              "stain_jitter",
              "scales and shifts haematoxylin and eosin, in the basis of the reference stains"),
          .compile = Compile,
          .needs = {.rgb = true, .random = true},
          .axes = plan::OpAxes::kPlane,
          .images = {kIntensities.begin(), kIntensities.end()},
          .example = {{"p", 1}}};
}

OdStep DrawStainJitter(const StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key) {
  return DrawStains({options.p, options.alpha, options.beta}, basis.stains,
                    LeastSquares(basis.stains), key);
}

}  // namespace patchbay::ops
