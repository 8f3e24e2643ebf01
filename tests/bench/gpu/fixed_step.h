// A kernel that reads a batch and then computes for a given time, in place of a training step where
// there is no torch. It has only the length of a step.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace patchbay::bench {

struct FixedStep {
  const std::byte* d_batch = nullptr;  ///< aligned to 4
  std::uint64_t batch_bytes = 0;
  std::byte* d_out = nullptr;  ///< FixedStepOutBytes(blocks)
  std::int64_t rounds = 0;     ///< multiplications of each thread; larger = longer
  unsigned blocks = 0;         ///< blocks of 256 threads; 0: as many as fill a large GPU
};

std::uint64_t FixedStepOutBytes(unsigned blocks);

/// Queues it; the cudaError_t. Does not synchronise.
int LaunchFixedStep(const FixedStep& step, CUstream_st* stream);

}  // namespace patchbay::bench
