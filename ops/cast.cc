#include "ops/cast.h"

#include <cstring>

#include "ops/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

StatusOr<PixelPair> Checked(const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(PixelPair pair, CheckPair("cast", in, out));
  if (in.dtype != DType::kFloat32) {
    return absl::InvalidArgumentError(StrCat("cast: ", NameOf(in.dtype), " in, expected float32"));
  }
  if (in.shape[0] != out.shape[0] || in.shape[1] != out.shape[1]) {
    return absl::InvalidArgumentError("cast: the shapes differ");
  }
  return pair;
}

}  // namespace

config::Key CastOptions::Keys() {
  return {.name = "cast",
          .type = config::KeyType::kMap,
          .help = "rounds the values to a type at this place of the chain",
          .members = {{.name = "dtype",
                       .type = config::KeyType::kChoice,
                       .required = true,
                       .choices = {"uint8", "float16", "bfloat16", "float32"},
                       .help = "type to round to; the patch's own type is batch.dtype"}}};
}

CastOptions CastOptions::FromJson(const Json& options) {
  return {*DTypeFromName(options["dtype"].get_ref<const std::string&>())};
}

StatusOr<CastTo> CastTarget(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return CastTo::kUint8;
    case DType::kFloat16:
      return CastTo::kFloat16;
    case DType::kBfloat16:
      return CastTo::kBfloat16;
    case DType::kFloat32:
      return CastTo::kFloat32;
    default:
      return absl::InvalidArgumentError(
          StrCat("cast: to ", NameOf(dtype), ": expected uint8, float16, bfloat16 or float32"));
  }
}

Status Cast(const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(in, out));
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(out.dtype));
  const auto element_bytes = static_cast<std::size_t>(pair.out.element_bytes);
  for (std::int64_t y = 0; y < pair.out.height; ++y) {
    for (std::int64_t x = 0; x < pair.out.width; ++x) {
      for (std::int64_t c = 0; c < pair.out.channels; ++c) {
        float value;
        std::memcpy(&value, pair.in.At(y, x, c), sizeof value);
        const std::uint32_t bits = CastBits(value, to);
        std::memcpy(pair.out.At(y, x, c), &bits, element_bytes);
      }
    }
  }
  return absl::OkStatus();
}

Status LaunchCast(const ConstTensorView& d_in, const TensorView& d_out, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(d_in, d_out));
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(d_out.dtype));
  return LaunchOutcome("cast", LaunchCastKernel(to, pair.in, pair.out, stream));
}

}  // namespace patchbay::ops
