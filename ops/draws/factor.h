// Ops that draw one factor for a patch: brightness, contrast.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

struct FactorOptions {
  double p = kDefaultProbability;
  DrawRange factor = {0.75, 1.25};  ///< drawn around 1, see DrawnAroundOne

  static std::vector<plan::Option<FactorOptions>> Table();
};

/// Adds an op with these options: `make(factor)` is the step of a factor other than 1.
template <typename Make>
Status CompileFactor(const plan::OpStep& step, bool keeps, ProgramBuilder& program,
                     const Make& make) {
  program.Add(
      [make, name = step.op->name(), occurrence = plan::Occurrence(step),
       options = plan::ReadOptions<FactorOptions>(step.options)](const PatchDraw& draw,
                                                                 StepSink& sink) {
        const auto word = draw.WordIf(options.p, occurrence);
        if (!word) return;
        const auto factor = static_cast<float>(DrawnAroundOne(options.factor, *word));
        if (factor == 1) return;
        draw.Say(name, " ", Digits(factor, 2));
        sink.Add(make(factor));
      },
      keeps);
  return absl::OkStatus();
}

}  // namespace patchbay::ops
