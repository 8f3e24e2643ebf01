#include "runtime/model/ops/gaussian_blur.h"

namespace patchbay::plan {

config::Key GaussianBlurOptions::Keys() {
  const GaussianBlurOptions defaults;
  return {.name = "gaussian_blur",
          .type = config::KeyType::kMap,
          .help =
              "a Gaussian filter along every axis; the patch is mirrored about its outer pixels "
              "(reflect101)",
          .members = {ProbabilityKey(), RangeKey({.name = "sigma",
                                                  .unit = "px",
                                                  .min = 0,
                                                  .max = kMaxBlurSigma,
                                                  .help = "standard deviation of the filter"},
                                                 defaults.sigma)}};
}

GaussianBlurOptions GaussianBlurOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "sigma")};
}

}  // namespace patchbay::plan
