// Obstacles to the use of GPUs, and what to do about each, in words for people. configs/gpu.md
// lists them all.
#pragma once

#include <string>

#include "runtime/memory/gpu.h"

namespace patchbay::memory {

/// Why CUDA shows no device. Versions are CUDA's numbers: 1000 * major + 10 * minor, 0 for none.
std::string WhyNoGpus(int driver_version, int runtime_version);

/// The limit that the GPU's set-up puts on it, and what to do; "" for one that serves workers and
/// trainers alike.
std::string LimitOf(const GpuDescription& gpu);

/// Why `wanted_bytes` for `what` did not fit the GPU of this index, with what is free on it.
std::string WhyNoRoom(int gpu, std::uint64_t wanted_bytes);

}  // namespace patchbay::memory
