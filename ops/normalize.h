// normalize: (x / scale - mean) / std for each channel, computed in double and rounded once to
// float32.
#pragma once

#include <vector>

#include "ops/normalize_math.h"
#include "ops/strided.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

struct NormalizeOptions {
  double scale = 255.0;              ///< what the input's range is divided by first
  std::vector<double> mean = {0.0};  ///< after scaling; one for all channels, or one for each
  std::vector<double> std = {1.0};   ///< likewise; above 0

  static config::Key Keys();
  /// From a value that passed Keys().
  static NormalizeOptions FromJson(const Json& options);
};

/// The constants of each channel. InvalidArgument when a list has neither one value nor `channels`,
/// a std or the scale is not above 0, or a value is not finite.
StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const NormalizeOptions& options,
                                                          int channels);

/// (height, width, channels), uint8 or float32 in, float32 out, any strides, equal shapes.
Status Normalize(const NormalizeOptions& options, const ConstTensorView& in, const TensorView& out);

/// The same for device memory, queued in `stream`; does not synchronise.
Status LaunchNormalize(const NormalizeOptions& options, const ConstTensorView& d_in,
                       const TensorView& d_out, memory::GpuStream stream);

/// In normalize.cu. Returns CUDA's error number.
int LaunchNormalizeKernel(const NormalizeConstants& constants, const Strided& d_in,
                          const Strided& d_out, memory::GpuStream stream);

}  // namespace patchbay::ops
