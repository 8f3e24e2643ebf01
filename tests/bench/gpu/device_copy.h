// Copies between two places of one GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/memory/gpu.h"

namespace patchbay::memory {

/// Queues the copy in `stream`; the ranges do not overlap. Does not synchronise. Unimplemented in a
/// build without CUDA.
Status CopyOnDevice(std::byte* d_to, const std::byte* d_from, std::uint64_t size_bytes,
                    GpuStream stream);

}  // namespace patchbay::memory
