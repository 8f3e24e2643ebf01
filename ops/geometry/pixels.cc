#include "ops/geometry/pixels.h"

#include <algorithm>

#include "runtime/core/strings.h"

#if PATCHBAY_CUDA_API
#include "runtime/memory/cuda_status.h"
#endif

namespace patchbay::ops {
namespace {

Strided FromView(const ConstTensorView& view) {
  Strided s;
  s.data = const_cast<std::byte*>(view.data);  // NOLINT: inputs are only read
  s.height = view.shape[0];
  s.width = view.shape[1];
  s.channels = view.shape[2];
  s.row_bytes = view.stride_bytes[0];
  s.column_bytes = view.stride_bytes[1];
  s.channel_bytes = view.stride_bytes[2];
  s.element_bytes = static_cast<int>(SizeOf(view.dtype));
  return s;
}

}  // namespace

StatusOr<Strided> AsInput(const ConstTensorView& view) {
  if (view.rank != 3 || view.data == nullptr ||
      std::min({view.shape[0], view.shape[1], view.shape[2]}) < 1) {
    return InvalidArgument("read pixels: expected (height, width, channels) with memory");
  }
  return FromView(view);
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
      return InvalidArgument("cast: to ", NameOf(dtype),
                             ": expected uint8, float16, bfloat16 or float32");
  }
}

Status LaunchOutcome(std::string_view op, [[maybe_unused]] int cuda_error) {
#if PATCHBAY_CUDA_API
  return memory::FromCuda(StrCat("launch ", op), static_cast<cudaError_t>(cuda_error));
#else
  return Unimplemented("launch ", op, ": this build has no CUDA");
#endif
}

}  // namespace patchbay::ops
