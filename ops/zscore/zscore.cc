#include "ops/zscore/zscore.h"

#include <algorithm>

#include "ops/intensity/channel_steps.h"
#include "ops/steps/op_program.h"
#include "ops/zscore/zscore_math.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {

std::vector<plan::Option<ZscoreOptions>> ZscoreOptions::Table() {
  using O = ZscoreOptions;
  return {plan::OptionOf(
              &O::over,
              {.name = "over",
               .choices = {"body", "nonzero", "image", "mask"},
               .help = "the voxels that count: those of the body of a CT, without table and air; "
                       "those that are not 0, which alone are changed; all; or those of a mask"}),
          plan::OptionOf(&O::mask,
                         {.name = "mask",
                          .help = "with `over: mask`: the label set whose voxels count, those of "
                                  "any class but background and ignored ones"})};
}

Status ZscoreOptions::Check() const {
  if ((over == Over::kMask) != mask.empty()) return absl::OkStatus();
  if (mask.empty()) return InvalidArgument("over: mask needs `mask`, the name of a label set");
  return InvalidArgument("mask: '", mask, "': it goes with `over: mask`");
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto options = plan::ReadOptions<ZscoreOptions>(step.options);
  const bool keeps_zero = options.over == ZscoreOptions::Over::kNonzero;
  const int channels = program.shape().channels;
  program.Add([keeps_zero, channels](const PatchDraw& draw, StepSink& sink) {
    const auto line = [&draw](int c) {
      const plan::ChannelNumbers numbers = draw.facts.NumbersOf(c);
      return NormalisingLine(numbers.mean, std::max(numbers.std, kMinDeviation));
    };
    if (keeps_zero) {
      AddToChannels(channels, sink, [&line](int c) { return LineBesideZero{line(c)}; });
    } else {
      AddToChannels(channels, sink, line);
    }
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeZscore() {
  return {.number = ZscoreOptions::kNumber,
          .keys = plan::KeysOf<ZscoreOptions>(
              "zscore",
              "(x - mean) / std of the windowed values of the whole volume, as ingest counted "
              "them; volumes; not with ct_normalize, percentile or normalize"),
          .compile = Compile,
          .needs = {.once = true, .body = true},
          .axes = plan::OpAxes::kVolume,
          .scale = plan::OpScale::kNormalised};
}

}  // namespace patchbay::ops
