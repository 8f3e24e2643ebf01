#include "ops/icc_to_srgb/icc_to_srgb.h"

#include "ops/icc_to_srgb/icc_lookup.h"
#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "ops/steps/op_program.h"

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

namespace {

Status Compile(const plan::OpStep& /*step*/, ProgramBuilder& program) {
  program.Add([](const PatchDraw& draw, StepSink& sink) {
    const IccLookup* const lookup = draw.colours.icc;
    if (lookup == nullptr) return;
    sink.Add(lookup->step());
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeIccToSrgb() {
  return {
      .number = IccToSrgbOptions::kNumber,
      .keys = plan::KeysOf<IccToSrgbOptions>(
          "icc_to_srgb", "the colours of each slide as sRGB, by the ICC profile of its scanner"),
      .compile = Compile,
      .needs = {.rgb = true, .once = true, .icc = true},
      .axes = plan::OpAxes::kPlane,
      .images = {DType::kUint8},
      .refuses_missing = [](const Json& options) {
        return !plan::ReadOptions<IccToSrgbOptions>(options).keeps_missing;
      }};
}

}  // namespace patchbay::ops
