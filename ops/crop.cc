#include "ops/crop.h"

#include "ops/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

StatusOr<PixelPair> Checked(const CropParameters& parameters, const ConstTensorView& in,
                            const TensorView& out) {
  PB_ASSIGN_OR_RETURN(PixelPair pair, CheckPair("crop", in, out));
  PB_RETURN_IF_ERROR(CheckGather("crop", in, out, out.shape[0], out.shape[1]));
  // Written so that hostile offsets cannot overflow.
  if (parameters.y < 0 || parameters.x < 0 || parameters.y > in.shape[0] - out.shape[0] ||
      parameters.x > in.shape[1] - out.shape[1]) {
    return absl::InvalidArgumentError(StrCat("crop: window ", out.shape[0], " x ", out.shape[1],
                                             " at (", parameters.y, ", ", parameters.x,
                                             ") is not inside ", in.shape[0], " x ", in.shape[1]));
  }
  return pair;
}

std::int64_t Place(std::uint32_t high, std::uint32_t low, std::int64_t margin) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<std::int64_t>(UniformBelow(bits, 2 * static_cast<std::uint64_t>(margin) + 1));
}

}  // namespace

config::Key CropOptions::Keys() {
  return {.name = "crop",
          .type = config::KeyType::kMap,
          .help = "cuts the patch out of a larger box",
          .members = {{.name = "margin",
                       .type = config::KeyType::kIntList,
                       .required = true,
                       .unit = "px",
                       .min = 0,
                       .max = static_cast<double>(kMaxCropMargin),
                       .min_items = 2,
                       .max_items = 2,
                       .help = "pixels read beyond the patch on each side, y and x"},
                      {.name = "position",
                       .type = config::KeyType::kChoice,
                       .fallback = "random",
                       .choices = {"random", "center"},
                       .help = "anywhere within the margins, or the centre"}}};
}

CropOptions CropOptions::FromJson(const Json& options) {
  return {options["margin"][0].get<std::int64_t>(), options["margin"][1].get<std::int64_t>(),
          options["position"] == "random"};
}

CropParameters DrawCrop(const CropOptions& options, const DrawKey& key) {
  if (!options.random) return {options.margin_y, options.margin_x};
  const PhiloxBlock block = Draw(key, 0);
  return {Place(block.word[0], block.word[1], options.margin_y),
          Place(block.word[2], block.word[3], options.margin_x)};
}

Status Crop(const CropParameters& parameters, const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(parameters, in, out));
  GatherPixels(pair.in, pair.out, CropSource{parameters});
  return absl::OkStatus();
}

Status LaunchCrop(const CropParameters& parameters, const ConstTensorView& d_in,
                  const TensorView& d_out, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(parameters, d_in, d_out));
  return LaunchOutcome("crop", LaunchCropKernel(CropSource{parameters}, pair.in, pair.out, stream));
}

}  // namespace patchbay::ops
