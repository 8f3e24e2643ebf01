// flip: mirrors an image left-right and top-bottom, each with its own probability. Exact.
#pragma once

#include "ops/flip_math.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

struct FlipOptions {
  double horizontal = 0.5;  ///< probability of mirroring left-right
  double vertical = 0.5;    ///< probability of mirroring top-bottom

  static config::Key Keys();
  /// From a value that passed Keys().
  static FlipOptions FromJson(const Json& options);
};

/// Words 0 and 1 of the key's first block decide horizontal and vertical.
FlipParameters DrawFlip(const FlipOptions& options, const DrawKey& key);

/// (height, width, channels) of any type and strides, `in` and `out` of equal shape and type and
/// not overlapping. InvalidArgument otherwise.
Status Flip(const FlipParameters& parameters, const ConstTensorView& in, const TensorView& out);

/// The same for device memory, queued in `stream`; does not synchronise.
Status LaunchFlip(const FlipParameters& parameters, const ConstTensorView& d_in,
                  const TensorView& d_out, memory::GpuStream stream);

/// In flip.cu. Returns CUDA's error number.
int LaunchFlipKernel(const FlipSource& source, const Strided& d_in, const Strided& d_out,
                     memory::GpuStream stream);

}  // namespace patchbay::ops
