// rotate90: turns an image by 0, 90, 180 or 270 degrees, each equally likely. Exact.
#pragma once

#include "ops/rotate90_math.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

struct Rotate90Options {
  static config::Key Keys();
};

/// The two highest bits of the key's first word.
Rotate90Parameters DrawRotate90(const DrawKey& key);

/// (height, width, channels) of any type and strides, not overlapping; odd turns swap height and
/// width. InvalidArgument when `out` has another shape or type, or turns are not 0..3.
Status Rotate90(const Rotate90Parameters& parameters, const ConstTensorView& in,
                const TensorView& out);

/// The same for device memory, queued in `stream`; does not synchronise.
Status LaunchRotate90(const Rotate90Parameters& parameters, const ConstTensorView& d_in,
                      const TensorView& d_out, memory::GpuStream stream);

/// In rotate90.cu. Returns CUDA's error number.
int LaunchRotate90Kernel(const Rotate90Source& source, const Strided& d_in, const Strided& d_out,
                         memory::GpuStream stream);

}  // namespace patchbay::ops
