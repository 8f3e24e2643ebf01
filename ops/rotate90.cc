#include "ops/rotate90.h"

#include "ops/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

StatusOr<PixelPair> Checked(const Rotate90Parameters& parameters, const ConstTensorView& in,
                            const TensorView& out) {
  if (parameters.turns < 0 || parameters.turns > 3) {
    return absl::InvalidArgumentError(
        StrCat("rotate90: ", parameters.turns, " turns: not in 0..3"));
  }
  PB_ASSIGN_OR_RETURN(PixelPair pair, CheckPair("rotate90", in, out));
  const bool odd = parameters.turns % 2 != 0;
  PB_RETURN_IF_ERROR(
      CheckGather("rotate90", in, out, in.shape[odd ? 1 : 0], in.shape[odd ? 0 : 1]));
  return pair;
}

}  // namespace

config::Key Rotate90Options::Keys() {
  return {.name = "rotate90",
          .type = config::KeyType::kMap,
          .help =
              "turns the patch by 0, 90, 180 or 270 degrees, each equally likely; square "
              "patches only"};
}

Rotate90Parameters DrawRotate90(const DrawKey& key) {
  return {static_cast<int>(Draw(key, 0).word[0] >> 30)};
}

Status Rotate90(const Rotate90Parameters& parameters, const ConstTensorView& in,
                const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(parameters, in, out));
  GatherPixels(pair.in, pair.out, Rotate90Source{parameters, pair.in.height, pair.in.width});
  return absl::OkStatus();
}

Status LaunchRotate90(const Rotate90Parameters& parameters, const ConstTensorView& d_in,
                      const TensorView& d_out, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(parameters, d_in, d_out));
  const Rotate90Source source{parameters, pair.in.height, pair.in.width};
  return LaunchOutcome("rotate90", LaunchRotate90Kernel(source, pair.in, pair.out, stream));
}

}  // namespace patchbay::ops
