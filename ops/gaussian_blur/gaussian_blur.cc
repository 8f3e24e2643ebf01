#include "ops/gaussian_blur/gaussian_blur.h"

#include <cmath>

#include "ops/draws/draws.h"
#include "ops/lanes/fixed_math.h"

namespace patchbay::ops {

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
          .needs = {.neighbours = true, .random = true, .once = true},
          .axes = plan::OpAxes::kDepth,
          .example = {{"p", 1}, {"sigma", {1, 1}}}};
}

PatchBlur BlurOf(double sigma) {
  constexpr double kLog2E = 1.4426950408889634;
  PatchBlur blur;
  if (!(sigma > 0)) return blur;
  blur.radius = static_cast<int>(std::ceil(3 * sigma));
  std::array<double, kMaxBlurRadius + 1> half{};
  double sum = 0;
  for (int k = 0; k <= blur.radius; ++k) {
    const double scaled = k / sigma, exponent = -0.5 * scaled * scaled * kLog2E;
    const double weight = exponent < -1000 ? 0 : FixedBinaryPower(exponent);
    half[static_cast<std::size_t>(k)] = weight;
    sum += k == 0 ? weight : 2 * weight;
  }
  for (int k = -blur.radius; k <= blur.radius; ++k) {
    blur.weight[static_cast<std::size_t>(k + blur.radius)] =
        static_cast<float>(half[static_cast<std::size_t>(std::abs(k))] / sum);
  }
  return blur;
}

PatchBlur DrawBlur(const GaussianBlurOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  if (!(UniformFloat(block.word[0]) < options.p)) return {};
  return BlurOf(Drawn(options.sigma, block.word[1]));
}

}  // namespace patchbay::ops
