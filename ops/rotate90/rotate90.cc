#include "ops/rotate90/rotate90.h"

#include "ops/steps/op_program.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status CheckSquare(const Json&, const Extent& patch) {
  if (patch.y == patch.x) return absl::OkStatus();
  return InvalidArgument("needs a square patch, got ", patch.y, " x ", patch.x);
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  program.images().Add(
      plan::Occurrence(step), [](const DrawKey& key, ImageComposition& composition) {
        const int turns = DrawRotate90(key).turns;
        const std::int64_t last_y = composition.height - 1, last_x = composition.width - 1;
        composition.Move([=](PixelPlace to) -> PixelPlace {
          switch (turns) {
            case 1:
              return {to.x, last_x - to.y};
            case 2:
              return {last_y - to.y, last_x - to.x};
            case 3:
              return {last_y - to.x, to.y};
            default:
              return to;
          }
        });
      });
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<Rotate90Options>> Rotate90Options::Table() {
  using O = Rotate90Options;
  return std::vector<plan::Option<O>>();
}

plan::OpRow DescribeRotate90() {
  return {.number = Rotate90Options::kNumber,
          .keys = plan::KeysOf<Rotate90Options>(
              "rotate90",
              "rotates the patch by 0, 90, 180 or 270 degrees, each equally likely; square "
              "patches only"),
          .compile = Compile,
          .needs = {.moves = true, .random = true},
          .axes = plan::OpAxes::kPlane,
          .check_plane = CheckSquare};
}

Rotate90Parameters DrawRotate90(const DrawKey& key) {
  return {static_cast<int>(Draw(key, 0).word[0] >> 30)};
}

}  // namespace patchbay::ops
