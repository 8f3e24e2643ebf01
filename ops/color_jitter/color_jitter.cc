#include "ops/color_jitter/color_jitter.h"

#include <algorithm>
#include <utility>

#include "ops/draws/draws.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {
namespace {

/// Up to the contrast a point-wise step, from there on one about the mean.
void AddJitter(const ColorJitter& jitter, float white, StepSink& sink) {
  const auto* const end = jitter.order + kColorSteps;
  const auto* const contrast =
      jitter.contrast == 1 ? end : std::find(jitter.order, end, ColorStep::kContrast);
  const auto before = static_cast<int>(contrast - jitter.order);
  sink.Add(JitterStep{jitter, 0, before, 0, white});
  if (contrast != end) sink.Add(MeanJitterStep{{jitter, before, kColorSteps, 0, white}});
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  program.Add(
      [occurrence = plan::Occurrence(step),
       options = plan::ReadOptions<ColorJitterOptions>(step.options),
       white = static_cast<float>(program.shape().White())](const PatchDraw& draw, StepSink& sink) {
        const auto jitter = DrawColorJitter(options, draw.KeyOf(occurrence));
        if (!jitter) return;
        draw.Say("brightness ", Digits(jitter->brightness, 2), ", contrast ",
                 Digits(jitter->contrast, 2), ", saturation ", Digits(jitter->saturation, 2),
                 ", hue ", Digits(jitter->hue, 3));
        AddJitter(*jitter, white, sink);
      },
      true);
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<ColorJitterOptions>> ColorJitterOptions::Table() {
  using O = ColorJitterOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::brightness, {.name = "brightness", .min = 0, .max = 10, .help = "factor"}),
      plan::OptionOf(&O::contrast,
                     {.name = "contrast",
                      .min = 0,
                      .max = 10,
                      .help = "factor about the patch's mean grey; costs another pass unless "
                              "[1, 1]"}),
      plan::OptionOf(&O::saturation,
                     {.name = "saturation", .min = 0, .max = 10, .help = "factor; 0 is grey"}),
      plan::OptionOf(
          &O::hue,
          {.name = "hue", .unit = "turns", .min = -0.5, .max = 0.5, .help = "shift of the hue"})};
}

plan::OpRow DescribeColorJitter() {
  return {.number = ColorJitterOptions::kNumber,
          .keys = plan::KeysOf<ColorJitterOptions>(
              "color_jitter",
              "brightness, contrast, saturation and hue, in an order drawn for each patch"),
          .compile = Compile,
          .needs = {.rgb = true, .statistics = true, .random = true, .once = true},
          .axes = plan::OpAxes::kPlane,
          .images = {DType::kUint8, DType::kUint16, DType::kFloat32},
          .acts_with = {"brightness", "contrast", "saturation", "hue"},
          .example = {{"p", 1},
                      {"brightness", {0.8, 1.2}},
                      {"contrast", {0.8, 1.2}},
                      {"saturation", {0.8, 1.2}},
                      {"hue", {-0.1, 0.1}}}};
}

std::optional<ColorJitter> DrawColorJitter(const ColorJitterOptions& options, const DrawKey& key) {
  const PhiloxBlock first = Draw(key, 0), second = Draw(key, 1);
  if (!(UniformFloat(first.word[0]) < options.p)) return std::nullopt;
  ColorJitter jitter;
  // The order by its number in the factorial base.
  auto number = static_cast<std::uint32_t>(UniformBelow(std::uint64_t{first.word[1]} << 32, 24));
  for (std::uint32_t i = 0; i + 1 < kColorSteps; ++i) {
    const std::uint32_t left = kColorSteps - i;
    std::swap(jitter.order[i], jitter.order[i + number % left]);
    number /= left;
  }
  jitter.brightness = static_cast<float>(Drawn(options.brightness, second.word[0]));
  jitter.contrast = static_cast<float>(Drawn(options.contrast, second.word[1]));
  jitter.saturation = static_cast<float>(Drawn(options.saturation, second.word[2]));
  jitter.hue = static_cast<float>(Drawn(options.hue, second.word[3]));
  const bool nothing =
      jitter.brightness == 1 && jitter.contrast == 1 && jitter.saturation == 1 && jitter.hue == 0;
  if (nothing) return std::nullopt;
  return jitter;
}

}  // namespace patchbay::ops
