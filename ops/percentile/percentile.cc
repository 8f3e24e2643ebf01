// percentile: two percentiles of the image's values become 0 and 1, and values beyond them are
// clamped.
#include <algorithm>
#include <array>
#include <vector>

#include "ops/intensity/channel_steps.h"
#include "ops/intensity/tone_math.h"
#include "ops/steps/op_program.h"
#include "runtime/model/ops/op_options.h"

namespace patchbay::ops {
namespace {

struct PercentileOptions {
  std::array<double, 2> range = {0.5, 99.5};

  Status Check() const {
    if (range[0] < range[1]) return absl::OkStatus();
    return InvalidArgument("range: [", range[0], ", ", range[1],
                           "]: the low percentile is not below the high one");
  }
  static std::vector<plan::Option<PercentileOptions>> Table() {
    return {plan::OptionOf(&PercentileOptions::range,
                           {.name = "range",
                            .unit = "%",
                            .min = 0,
                            .max = 100,
                            .help = "the percentiles of all voxels that become 0 and 1"})};
  }
};

Status Compile(const plan::OpStep& /*step*/, ProgramBuilder& program) {
  program.Add([channels = program.shape().channels](const PatchDraw& draw, StepSink& sink) {
    AddToChannels(channels, sink, [&draw](int c) {
      const plan::ChannelNumbers numbers = draw.facts.NumbersOf(c);
      return WindowStep{static_cast<float>(numbers.mean),
                        static_cast<float>(1 / std::max(numbers.std, kMinDeviation))};
    });
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribePercentile() {
  return {.number = plan::OpNumber{23},
          .keys = plan::KeysOf<PercentileOptions>(
              "percentile",
              "maps two percentiles of the windowed values of the whole volume to 0 and 1 and "
              "clamps what lies outside; volumes; not with ct_normalize, zscore or normalize"),
          .compile = Compile,
          // The lower percentile stands in the place of the mean, the way to the upper one in that
          // of the deviation.
          .needs = {.once = true, .body = true},
          .axes = plan::OpAxes::kVolume,
          .scale = plan::OpScale::kNormalised};
}

}  // namespace patchbay::ops
