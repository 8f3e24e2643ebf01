#include "ops/window/window.h"

#include "ops/intensity/tone_math.h"
#include "ops/steps/op_program.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {

std::vector<plan::Option<WindowOptions>> WindowOptions::Table() {
  using O = WindowOptions;
  return {plan::OptionOf(&O::range, {.name = "range",
                                     .required = true,
                                     .unit = "HU",
                                     .min = -kMaxWindowBound,
                                     .max = kMaxWindowBound,
                                     .help = "the values that become 0 and 1"})};
}

Status WindowOptions::Check() const {
  if (range[0] < range[1]) return absl::OkStatus();
  return InvalidArgument("range: [", range[0], ", ", range[1],
                         "]: the low bound is not below the high one");
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto window = plan::ReadOptions<WindowOptions>(step.options);
  program.AddFixed(WindowStep{static_cast<float>(window.range[0]),
                              static_cast<float>(1 / (window.range[1] - window.range[0]))});
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeWindow() {
  return {
      .number = WindowOptions::kNumber,
      .keys = plan::KeysOf<WindowOptions>(
          "window",
          "maps a range of Hounsfield units to 0..1 and clamps what lies outside; volumes only"),
      .compile = Compile,
      .needs = {.once = true},
      .axes = plan::OpAxes::kVolume,
      .scale = plan::OpScale::kWindowed,
      .example = {{"range", {-150, 250}}},
      .window = [](const Json& options) -> plan::ValueWindow {
        const auto window = plan::ReadOptions<WindowOptions>(options);
        return {window.range[0], window.range[1]};
      }};
}

}  // namespace patchbay::ops
