#include "ops/gaussian_noise/gaussian_noise.h"

#include "ops/draws/draws.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

std::vector<plan::Option<GaussianNoiseOptions>> GaussianNoiseOptions::Table() {
  using O = GaussianNoiseOptions;
  return {ProbabilityOption<O>(),
          plan::OptionOf(&O::std, {.name = "std",
                                   .unit = "full scale",
                                   .min = 0,
                                   .max = 1,
                                   .help = "standard deviation before normalize; 1 is white; for "
                                           "volumes in units of the normalised values"})};
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  program.Add([occurrence = plan::Occurrence(step),
               options = plan::ReadOptions<GaussianNoiseOptions>(step.options),
               white = program.shape().White()](const PatchDraw& draw, StepSink& sink) {
    const PatchNoise noise = DrawNoise(options, draw.KeyOf(occurrence), white);
    if (!(noise.std > 0)) return;
    draw.Say("noise, std ", Digits(noise.std, 3));
    sink.Add(noise);
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeGaussianNoise() {
  return {.number = GaussianNoiseOptions::kNumber,
          .keys = plan::KeysOf<GaussianNoiseOptions>("gaussian_noise",
                                                     "adds normal noise, drawn for every value"),
          .compile = Compile,
          .needs = {.random = true, .once = true},
          .axes = plan::OpAxes::kDepth,
          .first_in_volumes = true,
          .example = {{"p", 1}, {"std", {0.01, 0.02}}}};
}

PatchNoise DrawNoise(const GaussianNoiseOptions& options, const DrawKey& key, double white) {
  const PhiloxBlock block = Draw(key, 0);
  PatchNoise noise;
  if (!(UniformFloat(block.word[0]) < options.p)) return noise;
  noise.std = static_cast<float>(Drawn(options.std, block.word[1]) * white);
  DrawKey own = key;
  own.stream = DrawStream::kNoise;
  noise.key = NoiseKeyOf(own);
  return noise;
}

}  // namespace patchbay::ops
