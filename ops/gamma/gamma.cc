#include "ops/gamma/gamma.h"

#include <algorithm>

#include "ops/draws/factor.h"
#include "ops/gamma/gamma_math.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

std::vector<plan::Option<GammaOptions>> GammaOptions::Table() {
  using O = GammaOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::gamma,
                     {.name = "gamma",
                      .min = 0.05,
                      .max = 20,
                      .help = "exponent; half of the draws are below 1 if the range contains 1"}),
      plan::OptionOf(&O::retain_stats, {.name = "retain_stats",
                                        .help = "keep the patch's mean and standard deviation"}),
      plan::OptionOf(&O::invert, {.name = "invert",
                                  .help = "applied to the negated values, then negated back"})};
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  program.Add(
      [occurrence = plan::Occurrence(step), channels = program.shape().channels,
       options = plan::ReadOptions<GammaOptions>(step.options)](const PatchDraw& draw,
                                                                StepSink& sink) {
        const auto exponents = DrawFactors(options.p, options.gamma, channels, draw, occurrence);
        if (!exponents) return;
        draw.Say("gamma ", exponents->Text());
        GammaStep made{.retain_stats = options.retain_stats, .invert = options.invert};
        std::copy(exponents->of.begin(), exponents->of.end(), made.exponent);
        sink.Add(made);
      },
      true);
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeGamma() {
  return {.number = GammaOptions::kNumber,
          .keys = plan::KeysOf<GammaOptions>(
              "gamma",
              "raises the values, scaled to the patch's range, to a power; volumes only; may be "
              "used more than once"),
          .compile = Compile,
          .needs = {.statistics = true, .random = true},
          .axes = plan::OpAxes::kVolume,
          .example = {{"p", 1}, {"retain_stats", true}}};
}

}  // namespace patchbay::ops
