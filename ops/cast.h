// cast: float32 to uint8, float16, bfloat16 or float32; nearest, ties to even, once. As an op of a
// chain it rounds the values at that place; the type of the finished patch is batch.dtype.
#pragma once

#include "ops/cast_math.h"
#include "ops/strided.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

struct CastOptions {
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32

  static config::Key Keys();
  /// From a value that passed Keys().
  static CastOptions FromJson(const Json& options);
};

/// InvalidArgument for a type that no cast gives.
StatusOr<CastTo> CastTarget(DType dtype);

/// (height, width, channels), float32 in, any strides; the type of `out` decides. InvalidArgument
/// for other types or different shapes.
Status Cast(const ConstTensorView& in, const TensorView& out);

/// The same for device memory, queued in `stream`; does not synchronise.
Status LaunchCast(const ConstTensorView& d_in, const TensorView& d_out, memory::GpuStream stream);

/// In cast.cu. Returns CUDA's error number.
int LaunchCastKernel(CastTo to, const Strided& d_in, const Strided& d_out,
                     memory::GpuStream stream);

}  // namespace patchbay::ops
