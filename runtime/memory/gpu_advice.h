// Messages about obstacles to the use of GPUs, each with a remedy. configs/gpu.md lists them all.
#pragma once

#include <string>

#include "runtime/memory/gpu.h"

namespace patchbay::memory {

/// Why CUDA shows no device. Versions are CUDA's numbers: 1000 * major + 10 * minor, 0 for none.
std::string WhyNoGpus(int driver_version, int runtime_version);

/// The limit that the GPU's configuration imposes, with a remedy; "" for a GPU that serves workers
/// and trainers alike.
std::string LimitOf(const GpuDescription& gpu);

/// The message that `wanted_bytes` for `what` did not fit the GPU of this index, with its free
/// memory.
std::string WhyNoRoom(int gpu, std::uint64_t wanted_bytes);

}  // namespace patchbay::memory
