#include "ops/pixels.h"

#include <algorithm>

#include "runtime/base/strings.h"

#if PATCHBAY_HAVE_CUDA
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

StatusOr<PixelPair> CheckPair(std::string_view op, const ConstTensorView& in,
                              const TensorView& out) {
  if (in.rank != 3 || out.rank != 3) {
    return absl::InvalidArgumentError(
        StrCat(op, ": expected (height, width, channels), got rank ", in.rank, " and ", out.rank));
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (in.shape[axis] < 1 || out.shape[axis] < 1) {
      return absl::InvalidArgumentError(StrCat(op, ": an extent is not positive"));
    }
  }
  if (in.data == nullptr || out.data == nullptr) {
    return absl::InvalidArgumentError(StrCat(op, ": a view has no memory"));
  }
  if (in.shape[2] != out.shape[2]) {
    return absl::InvalidArgumentError(
        StrCat(op, ": ", in.shape[2], " channels in, ", out.shape[2], " out"));
  }
  return PixelPair{FromView(in), FromView(out)};
}

StatusOr<Strided> AsInput(const ConstTensorView& view) {
  if (view.rank != 3 || view.data == nullptr ||
      std::min({view.shape[0], view.shape[1], view.shape[2]}) < 1) {
    return absl::InvalidArgumentError(
        "read pixels: expected (height, width, channels) with memory");
  }
  return FromView(view);
}

Status CheckGather(std::string_view op, const ConstTensorView& in, const TensorView& out,
                   std::int64_t height, std::int64_t width) {
  if (in.dtype != out.dtype) {
    return absl::InvalidArgumentError(
        StrCat(op, ": ", NameOf(in.dtype), " in, ", NameOf(out.dtype), " out"));
  }
  if (out.shape[0] != height || out.shape[1] != width) {
    return absl::InvalidArgumentError(StrCat(op, ": output is ", out.shape[0], " x ", out.shape[1],
                                             ", expected ", height, " x ", width));
  }
  return absl::OkStatus();
}

Status LaunchOutcome(std::string_view op, [[maybe_unused]] int cuda_error) {
#if PATCHBAY_HAVE_CUDA
  return memory::FromCuda(StrCat("launch ", op), static_cast<cudaError_t>(cuda_error));
#else
  return absl::UnimplementedError(StrCat("launch ", op, ": this build has no CUDA"));
#endif
}

}  // namespace patchbay::ops
