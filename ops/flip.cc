#include "ops/flip.h"

#include "ops/pixels.h"

namespace patchbay::ops {
namespace {

StatusOr<PixelPair> Checked(const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(PixelPair pair, CheckPair("flip", in, out));
  PB_RETURN_IF_ERROR(CheckGather("flip", in, out, in.shape[0], in.shape[1]));
  return pair;
}

}  // namespace

config::Key FlipOptions::Keys() {
  const FlipOptions defaults;
  return {.name = "flip",
          .type = config::KeyType::kMap,
          .help = "mirrors the patch",
          .members = {{.name = "horizontal",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.horizontal,
                       .min = 0,
                       .max = 1,
                       .help = "probability of mirroring left-right"},
                      {.name = "vertical",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.vertical,
                       .min = 0,
                       .max = 1,
                       .help = "probability of mirroring top-bottom"}}};
}

FlipOptions FlipOptions::FromJson(const Json& options) {
  return {options["horizontal"].get<double>(), options["vertical"].get<double>()};
}

FlipParameters DrawFlip(const FlipOptions& options, const DrawKey& key) {
  const PhiloxBlock block = Draw(key, 0);
  return {UniformFloat(block.word[0]) < options.horizontal,
          UniformFloat(block.word[1]) < options.vertical};
}

Status Flip(const FlipParameters& parameters, const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(in, out));
  GatherPixels(pair.in, pair.out, FlipSource{parameters, pair.in.height, pair.in.width});
  return absl::OkStatus();
}

Status LaunchFlip(const FlipParameters& parameters, const ConstTensorView& d_in,
                  const TensorView& d_out, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(d_in, d_out));
  const FlipSource source{parameters, pair.in.height, pair.in.width};
  return LaunchOutcome("flip", LaunchFlipKernel(source, pair.in, pair.out, stream));
}

}  // namespace patchbay::ops
