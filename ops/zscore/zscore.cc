#include "ops/zscore/zscore.h"

#include <algorithm>

#include "ops/intensity/tone_math.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

std::vector<plan::Option<ZscoreOptions>> ZscoreOptions::Table() {
  using O = ZscoreOptions;
  return {plan::OptionOf(
      &O::over, {.name = "over",
                 .choices = {"body"},
                 .help = "the voxels that count: those of the body, without table and air"})};
}

namespace {

Status Compile(const plan::OpStep& /*step*/, ProgramBuilder& program) {
  program.Add([](const PatchDraw& draw, StepSink& sink) {
    sink.Add(NormalisingLine(draw.facts.mean, std::max(draw.facts.std, kMinDeviation)));
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeZscore() {
  return {.number = ZscoreOptions::kNumber,
          .keys = plan::KeysOf<ZscoreOptions>(
              "zscore",
              "(x - mean) / std of the windowed values of the whole volume, as ingest counted "
              "them; volumes; not with ct_normalize or normalize"),
          .compile = Compile,
          .needs = {.once = true, .body = true},
          .axes = plan::OpAxes::kVolume,
          .scale = plan::OpScale::kNormalised};
}

}  // namespace patchbay::ops
