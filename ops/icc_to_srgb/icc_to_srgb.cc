#include "ops/icc_to_srgb/icc_to_srgb.h"

namespace patchbay::ops {

std::vector<plan::Option<IccToSrgbOptions>> IccToSrgbOptions::Table() {
  using O = IccToSrgbOptions;
  return {
      plan::OptionOf(&O::keeps_missing,
                     {.name = "missing",
                      .choices = {"keep", "refuse"},
                      .help = "a slide without a usable profile keeps its colours and is named, "
                              "or is an error"})};
}

plan::OpRow DescribeIccToSrgb() {
  return {
      .number = IccToSrgbOptions::kNumber,
      .keys = plan::KeysOf<IccToSrgbOptions>(
          "icc_to_srgb", "the colours of each slide as sRGB, by the ICC profile of its scanner"),
      .needs = {.rgb = true, .once = true, .icc = true},
      .axes = plan::OpAxes::kPlane,
      .images = {DType::kUint8},
      .refuses_missing = [](const Json& options) {
        return !IccToSrgbOptions::FromJson(options).keeps_missing;
      }};
}

}  // namespace patchbay::ops
