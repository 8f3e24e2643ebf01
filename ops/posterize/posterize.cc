#include <array>
#include <optional>
#include <vector>

#include "ops/draws/draws.h"
#include "ops/posterize/posterize_math.h"
#include "ops/steps/op_program.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {
namespace {

struct PosterizeOptions {
  double p = kDefaultProbability;
  int bits = 4;
  std::optional<std::array<double, 2>> range = {};

  Status Check() const {
    if (!range || (*range)[0] < (*range)[1]) return absl::OkStatus();
    return InvalidArgument("range: the low bound is not below the high one");
  }
  static std::vector<plan::Option<PosterizeOptions>> Table() {
    using O = PosterizeOptions;
    return {ProbabilityOption<O>(),
            plan::OptionOf(
                &O::bits,
                {.name = "bits", .min = 1, .max = 8, .help = "bits that are kept: 2^bits levels"}),
            plan::OptionOf(&O::range,
                           {.name = "range",
                            .min = -1e6,
                            .max = 1e6,
                            .help = "the values that are divided into levels; default: all of an "
                                    "integer type, 0 to 1 of float32 and of volumes"})};
  }
};

/// `white` of an integer type is its largest value.
PosterizeStep StepOf(const PosterizeOptions& options, double white) {
  const double full = white == 1 ? 1 : white + 1;
  const auto [low, high] = options.range.value_or(std::array<double, 2>{0, full});
  const int levels = 1 << options.bits;
  const double height = (high - low) / levels;
  return {static_cast<float>(low), static_cast<float>(height), static_cast<float>(1 / height),
          static_cast<float>(levels - 1)};
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto options = plan::ReadOptions<PosterizeOptions>(step.options);
  program.Add(
      [options, occurrence = plan::Occurrence(step),
       made = StepOf(options, program.shape().White())](const PatchDraw& draw, StepSink& sink) {
        if (!draw.WordIf(options.p, occurrence)) return;
        draw.Say("posterize, ", options.bits, " bits");
        sink.Add(made);
      });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribePosterize() {
  return {.number = plan::OpNumber{22},
          .keys = plan::KeysOf<PosterizeOptions>("posterize", "keeps the top bits of the values"),
          .compile = Compile,
          .needs = {.random = true},
          .axes = plan::OpAxes::kDepth,
          .example = {{"p", 1}, {"bits", 3}},
          .volume_example = {{"p", 1}, {"bits", 2}, {"range", {-200, 230.5}}}};
}

}  // namespace patchbay::ops
