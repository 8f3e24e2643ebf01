#include "ops/crop/crop.h"

#include "ops/steps/op_program.h"

namespace patchbay::ops {
namespace {

std::int64_t Place(std::uint32_t high, std::uint32_t low, std::int64_t margin) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<std::int64_t>(UniformBelow(bits, 2 * static_cast<std::uint64_t>(margin) + 1));
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto options = plan::ReadOptions<CropOptions>(step.options);
  program.images().AddMargin(options.margin[0], options.margin[1]);
  program.images().Add(plan::Occurrence(step),
                       [options](const DrawKey& key, ImageComposition& composition) {
                         const CropParameters window = DrawCrop(options, key);
                         composition.Move([window](PixelPlace to) {
                           return PixelPlace{to.y + window.y, to.x + window.x};
                         });
                         composition.height -= 2 * options.margin[0];
                         composition.width -= 2 * options.margin[1];
                       });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<CropOptions>> CropOptions::Table() {
  using O = CropOptions;
  return {
      plan::OptionOf(&O::margin, {.name = "margin",
                                  .required = true,
                                  .unit = "px",
                                  .min = 0,
                                  .max = static_cast<double>(kMaxCropMargin),
                                  .help = "pixels read beyond the patch on each side, y and x"}),
      plan::OptionOf(&O::random, {.name = "position",
                                  .choices = {"random", "center"},
                                  .help = "anywhere within the margins, or the centre"})};
}

plan::OpRow DescribeCrop() {
  return {.number = CropOptions::kNumber,
          .keys = plan::KeysOf<CropOptions>("crop", "cuts the patch out of a larger box"),
          .compile = Compile,
          .needs = {.moves = true, .random = true},
          .axes = plan::OpAxes::kPlane,
          .example = {{"margin", {3, 5}}},
          .moves_centre = [](const Json& options) {
            return plan::ReadOptions<CropOptions>(options).random;
          }};
}

CropParameters DrawCrop(const CropOptions& options, const DrawKey& key) {
  if (!options.random) return {options.margin[0], options.margin[1]};
  const PhiloxBlock block = Draw(key, 0);
  return {Place(block.word[0], block.word[1], options.margin[0]),
          Place(block.word[2], block.word[3], options.margin[1])};
}

}  // namespace patchbay::ops
