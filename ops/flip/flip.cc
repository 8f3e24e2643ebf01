#include "ops/flip/flip.h"

#include <algorithm>
#include <string>

#include "ops/steps/op_program.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status CheckAxes(const Json& axes) {
  std::string seen;
  for (const Json& axis : axes) {
    const auto& name = axis.get_ref<const std::string&>();
    if (name != "z" && name != "y" && name != "x") {
      return InvalidArgument("'", name, "' is not an axis: expected z, y and x");
    }
    if (seen.find(name) != std::string::npos) return InvalidArgument("'", name, "' twice");
    seen += name;
  }
  return absl::OkStatus();
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const std::uint32_t occurrence = plan::Occurrence(step);
  const auto options = plan::ReadOptions<FlipOptions>(step.options);
  if (program.shape().in_depth) {
    program.volumes().Add(
        {occurrence, [options](const DrawKey& key, VolumeComposition& composition) {
           DrawMirrors(options, key, composition.mirrored);
         }});
    return absl::OkStatus();
  }
  program.images().Add(occurrence, [options](const DrawKey& key, ImageComposition& composition) {
    const FlipParameters flip = DrawFlip(options, key);
    const std::int64_t last_y = composition.height - 1, last_x = composition.width - 1;
    composition.Move([&](PixelPlace to) {
      return PixelPlace{flip.vertical ? last_y - to.y : to.y,
                        flip.horizontal ? last_x - to.x : to.x};
    });
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<FlipOptions>> FlipOptions::Table() {
  using O = FlipOptions;
  return {
      plan::OptionOf(&O::horizontal, {.name = "horizontal",
                                      .min = 0,
                                      .max = 1,
                                      .help = "probability of mirroring left-right"}),
      plan::OptionOf(
          &O::vertical,
          {.name = "vertical", .min = 0, .max = 1, .help = "probability of mirroring top-bottom"}),
      plan::OptionOf(&O::axes, {.name = "axes",
                                .max_items = 3,
                                .help = "for volumes, instead of the two above: z, y, x, each "
                                        "with probability 0.5",
                                .check = CheckAxes})};
}

bool FlipOptions::Has(std::string_view axis) const {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Status FlipOptions::Check() const {
  const FlipOptions defaults;
  const bool given = horizontal != defaults.horizontal || vertical != defaults.vertical;
  if (!by_axes() || !given) return absl::OkStatus();
  return InvalidArgument("axes excludes horizontal and vertical");
}

plan::OpRow DescribeFlip() {
  return {.number = FlipOptions::kNumber,
          .keys = plan::KeysOf<FlipOptions>("flip", "mirrors the patch"),
          .compile = Compile,
          .needs = {.moves = true, .random = true},
          .example = {{"horizontal", 1}, {"vertical", 1}},
          .volume_example = {{"axes", {"z", "y", "x"}}},
          .for_volumes = [](const Json& options) {
            return plan::ReadOptions<FlipOptions>(options).by_axes();
          }};
}

FlipParameters DrawFlip(const FlipOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  return {UniformFloat(block.word[0]) < options.horizontal,
          UniformFloat(block.word[1]) < options.vertical};
}

void DrawMirrors(const FlipOptions& options, const DrawKey& key, bool (&mirrored)[3]) {
  const PhiloxBlock block = Draw(key, 0);
  const auto below = [&block](std::size_t word, double p) {
    return UniformFloat(block.word[word]) < p;
  };
  const bool z = options.by_axes() && options.Has("z") && below(0, 0.5);
  const bool y = options.by_axes() ? options.Has("y") && below(1, 0.5) : below(1, options.vertical);
  const bool x =
      options.by_axes() ? options.Has("x") && below(2, 0.5) : below(0, options.horizontal);
  mirrored[0] = mirrored[0] != z;
  mirrored[1] = mirrored[1] != y;
  mirrored[2] = mirrored[2] != x;
}

}  // namespace patchbay::ops
