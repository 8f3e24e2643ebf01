// cast: float32 to uint8, float16, bfloat16 or float32; nearest, ties to even, once. As an op of a
// chain it rounds the values at that place; the type of the finished patch is batch.dtype.
#pragma once

#include "ops/cast/cast_math.h"
#include "runtime/core/dtype.h"
#include "runtime/core/status.h"

namespace patchbay::ops {

/// InvalidArgument for a type that no cast gives.
StatusOr<CastTo> CastTarget(DType dtype);

}  // namespace patchbay::ops
