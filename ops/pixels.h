// Views checked and turned into what loops and kernels take.
#pragma once

#include <string_view>

#include "ops/strided.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

namespace patchbay::ops {

/// Both as (height, width, channels). InvalidArgument naming `op` unless both have rank 3 and equal
/// channels, and every extent is positive.
struct PixelPair {
  Strided in, out;
};
StatusOr<PixelPair> CheckPair(std::string_view op, const ConstTensorView& in,
                              const TensorView& out);

/// A view as an input; InvalidArgument unless it has rank 3, memory and positive extents.
StatusOr<Strided> AsInput(const ConstTensorView& view);

/// InvalidArgument naming `op` unless the types are equal and `out` is height x width.
Status CheckGather(std::string_view op, const ConstTensorView& in, const TensorView& out,
                   std::int64_t height, std::int64_t width);

/// OK for CUDA's error number 0; elsewhere a status. Unimplemented in a build without CUDA.
Status LaunchOutcome(std::string_view op, int cuda_error);

/// Copies pixels: out(y, x) = in(source(y, x)), elements of any size.
template <typename Source>
void GatherPixels(const Strided& in, const Strided& out, const Source& source) {
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x) {
      const PixelPlace from = source(PixelPlace{y, x});
      for (std::int64_t c = 0; c < out.channels; ++c) {
        __builtin_memcpy(out.At(y, x, c), in.At(from.y, from.x, c),
                         static_cast<std::size_t>(out.element_bytes));
      }
    }
  }
}

}  // namespace patchbay::ops
