#include "ops/gaussian_blur/gaussian_blur.h"

#include <cmath>

#include "ops/steps/op_program.h"

namespace patchbay::ops {
namespace {

/// Quotient of two neighbouring weights: exp(1 / (2 sigma^2)).
double SigmaOf(const PatchBlur& blur) {
  const auto middle = static_cast<std::size_t>(blur.radius);
  return std::sqrt(0.5 / std::log(double{blur.weight[middle]} / blur.weight[middle - 1]));
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const ProgramShape& shape = program.shape();
  const Extent& patch = shape.patch;
  BlurStep made;
  // An axis of one voxel has no neighbours to sum; images are blurred along both of theirs.
  made.along[0] = shape.in_depth && patch.z > 1;
  made.along[1] = !shape.in_depth || patch.y > 1;
  made.along[2] = !shape.in_depth || patch.x > 1;
  if (!made.along[0] && !made.along[1] && !made.along[2]) return absl::OkStatus();
  program.Add(
      [made, occurrence = plan::Occurrence(step),
       options = plan::ReadOptions<GaussianBlurOptions>(step.options)](const PatchDraw& draw,
                                                                       StepSink& sink) {
        BlurStep own = made;
        own.blur = DrawBlur(options, draw.KeyOf(occurrence));
        if (own.blur.radius == 0) return;
        if (draw.said != nullptr) draw.Say("blur, sigma ", Digits(SigmaOf(own.blur), 2), " px");
        sink.Add(own);
      },
      true);
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<GaussianBlurOptions>> GaussianBlurOptions::Table() {
  using O = GaussianBlurOptions;
  return {ProbabilityOption<O>(),
          plan::OptionOf(&O::sigma, {.name = "sigma",
                                     .unit = "px",
                                     .min = 0,
                                     .max = kMaxBlurSigma,
                                     .help = "standard deviation of the filter"})};
}

plan::OpRow DescribeGaussianBlur() {
  return {.number = GaussianBlurOptions::kNumber,
          .keys = plan::KeysOf<GaussianBlurOptions>(
              "gaussian_blur",
              "a Gaussian filter along every axis; the patch is mirrored about its outer pixels "
              "(reflect101)"),
          .compile = Compile,
          .needs = {.neighbours = true, .random = true, .once = true},
          .axes = plan::OpAxes::kDepth,
          .example = {{"p", 1}, {"sigma", {1, 1}}}};
}

PatchBlur DrawBlur(const GaussianBlurOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  if (!(UniformFloat(block.word[0]) < options.p)) return {};
  return BlurOf(Drawn(options.sigma, block.word[1]));
}

}  // namespace patchbay::ops
