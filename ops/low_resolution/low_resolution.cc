#include "ops/low_resolution/low_resolution.h"

#include <algorithm>
#include <cmath>

#include "ops/steps/op_program.h"

namespace patchbay::ops {

std::vector<plan::Option<LowResolutionOptions>> LowResolutionOptions::Table() {
  using O = LowResolutionOptions;
  return {ProbabilityOption<O>(), plan::OptionOf(&O::zoom, {.name = "zoom",
                                                            .min = kMinLowResolutionZoom,
                                                            .max = 1,
                                                            .help = "factor of each side"})};
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  program.Add(
      [patch = program.shape().patch, occurrence = plan::Occurrence(step),
       options = plan::ReadOptions<LowResolutionOptions>(step.options)](const PatchDraw& draw,
                                                                        StepSink& sink) {
        const auto word = draw.WordIf(options.p, occurrence);
        if (!word) return;
        const double zoom = Drawn(options.zoom, *word);
        const auto side = [zoom](std::int64_t whole) {
          return std::max<std::int64_t>(1, std::llround(static_cast<double>(whole) * zoom));
        };
        const Extent size(side(patch.z), side(patch.y), side(patch.x));
        if (size == patch) return;
        draw.Say("low resolution, ", size.ToString());
        sink.Add(CoarseStep{size});
      },
      true);
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeLowResolution() {
  return {
      .number = LowResolutionOptions::kNumber,
      .keys = plan::KeysOf<LowResolutionOptions>(
          "low_resolution",
          "downsamples the patch by nearest voxel, then upsamples it trilinearly; volumes only"),
      .compile = Compile,
      .needs = {.neighbours = true, .random = true, .once = true},
      .axes = plan::OpAxes::kVolume,
      .example = {{"p", 1}, {"zoom", {0.4, 0.8}}}};
}

}  // namespace patchbay::ops
