// Ops that draw one factor for each channel of a patch: brightness, contrast, gamma.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/draws/draws.h"
#include "ops/steps/op_program.h"
#include "runtime/core/channels.h"

namespace patchbay::ops {

struct FactorOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static std::vector<plan::Option<FactorOptions>> Table();
};

/// The draws of an op for the channels of a patch.
struct ChannelFactors {
  std::array<float, kMaxChannels> of = {};
  int channels = 1;

  /// "1.25", or "1.25, 0.90" of two channels.
  std::string Text() const;
};

/// Draws around 1 (DrawnAroundOne) from `range`, one for each channel, if the op is applied with
/// probability `p`: channel c takes word 1 of block c, so that a channel's draw does not depend on
/// how many there are.
std::optional<ChannelFactors> DrawFactors(double p, const DrawRange& range, int channels,
                                          const PatchDraw& draw, std::uint32_t occurrence);

/// Adds an op with these options: `add(factors, sink)` adds its step for factors that are not
/// all 1.
template <typename Add>
Status CompileFactor(const plan::OpStep& step, bool keeps, ProgramBuilder& program,
                     const Add& add) {
  program.Add(
      [add, name = step.op->name(), occurrence = plan::Occurrence(step),
       channels = program.shape().channels,
       options = plan::ReadOptions<FactorOptions>(step.options)](const PatchDraw& draw,
                                                                 StepSink& sink) {
        const auto factors = DrawFactors(options.p, options.factor, channels, draw, occurrence);
        if (!factors || std::all_of(factors->of.begin(), factors->of.begin() + channels,
                                    [](float factor) { return factor == 1; })) {
          return;
        }
        draw.Say(name, " ", factors->Text());
        add(*factors, sink);
      },
      keeps);
  return absl::OkStatus();
}

}  // namespace patchbay::ops
