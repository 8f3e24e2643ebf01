// The threads of a block as fibers of one OS thread.
#pragma once

#include <cstddef>
#include <functional>

#include "cuda_runtime.h"

namespace patchbay::emulated_cuda {

struct Grid {
  dim3 size{}, block{};
  std::size_t shared_bytes = 0;
  const void* kernel = nullptr;
  const std::function<void()>* run = nullptr;  ///< the body of one thread
};

/// Runs all blocks, one after another in an order of the seed's. Blocks; under the lock.
void RunGrid(const Grid& grid);

}  // namespace patchbay::emulated_cuda
