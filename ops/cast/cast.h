// cast: float32 to uint8, float16, bfloat16 or float32; nearest, ties to even, once. As an op of a
// chain it rounds the values at that place; the type of the finished patch is batch.dtype.
#pragma once

#include <vector>

#include "ops/geometry/pixels.h"
#include "runtime/core/dtype.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct CastOptions {
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32

  static constexpr plan::OpNumber kNumber{5};
  static std::vector<plan::Option<CastOptions>> Table();
};

}  // namespace patchbay::ops
