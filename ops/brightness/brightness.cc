// brightness: multiplies every value of a channel of a patch by one factor.
#include "ops/draws/factor.h"
#include "ops/intensity/channel_steps.h"
#include "ops/intensity/tone_math.h"

namespace patchbay::ops {
namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  return CompileFactor(step, false, program, [](const ChannelFactors& factors, StepSink& sink) {
    AddToChannels(factors.channels, sink, [&factors](int c) {
      return FreeLine(factors.of[static_cast<std::size_t>(c)], 0);
    });
  });
}

}  // namespace

plan::OpRow DescribeBrightness() {
  return {.number = plan::OpNumber{18},
          .keys = plan::KeysOf<FactorOptions>("brightness", "multiplies the values; volumes only"),
          .compile = Compile,
          .needs = {.random = true, .once = true},
          .axes = plan::OpAxes::kVolume,
          // Blur is linear: brightness may come before it.
          .first_in_volumes = true,
          .example = {{"p", 1}}};
}

}  // namespace patchbay::ops
