// Checks views and converts them to the form of loops and kernels.
#pragma once

#include <string_view>

#include "ops/geometry/strided.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::ops {

/// A view as an input; InvalidArgument unless it has rank 3, memory and positive extents.
StatusOr<Strided> AsInput(const ConstTensorView& view);

/// OK for CUDA's error number 0; elsewhere a status. Unimplemented in a build without CUDA.
Status LaunchOutcome(std::string_view op, int cuda_error);

}  // namespace patchbay::ops
