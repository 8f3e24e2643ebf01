// crop: takes a window out of a larger image. In a chain the source box is enlarged by the margins,
// so that the finished patch keeps its size. Exact.
#pragma once

#include "ops/crop_math.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

inline constexpr std::int64_t kMaxCropMargin = 4'096;

struct CropOptions {
  /// Pixels read beyond the patch on each side. Larger means patches move further from the grid.
  std::int64_t margin_y = 0, margin_x = 0;
  bool random = true;  ///< anywhere within the margins, or the centre

  static config::Key Keys();
  /// From a value that passed Keys().
  static CropOptions FromJson(const Json& options);
};

/// Uniform over the (2 margin_y + 1) x (2 margin_x + 1) places (words 0..1 of the key's first block
/// for y, 2..3 for x), or the centre.
CropParameters DrawCrop(const CropOptions& options, const DrawKey& key);

/// (height, width, channels) of any type and strides, not overlapping. InvalidArgument when the
/// window of `out`'s size does not lie inside `in`, or the types differ.
Status Crop(const CropParameters& parameters, const ConstTensorView& in, const TensorView& out);

/// The same for device memory, queued in `stream`; does not synchronise.
Status LaunchCrop(const CropParameters& parameters, const ConstTensorView& d_in,
                  const TensorView& d_out, memory::GpuStream stream);

/// In crop.cu. Returns CUDA's error number.
int LaunchCropKernel(const CropSource& source, const Strided& d_in, const Strided& d_out,
                     memory::GpuStream stream);

}  // namespace patchbay::ops
