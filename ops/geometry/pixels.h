// Checks views and types, and converts them to the form of loops and kernels.
#pragma once

#include <string_view>

#include "ops/geometry/patch_maps.h"
#include "ops/lanes/cast_bits.h"
#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

/// A view as an input; InvalidArgument unless it has rank 3, memory and positive extents.
StatusOr<Strided> AsInput(const ConstTensorView& view);

/// InvalidArgument for a type without a cast.
StatusOr<CastTo> CastTarget(DType dtype);

/// OK for CUDA's error number 0; elsewhere a status. Unimplemented in a build without CUDA.
Status LaunchOutcome(std::string_view op, int cuda_error);

}  // namespace patchbay::ops
