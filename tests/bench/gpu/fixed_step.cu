#include <cuda_runtime.h>

#include "runtime/memory/kernel_launch.cuh"
#include "tests/bench/gpu/fixed_step.h"

namespace patchbay::bench {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 528;  ///< two waves' worth of an sm_90 at four a time

/// Each thread reads its share of the batch once, then multiplies and adds in registers.
__global__ void __launch_bounds__(kThreads)
    FixedStepKernel(const std::uint32_t* d_batch, std::int64_t words, std::int64_t rounds,
                    float* d_out) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  std::uint32_t read = 0;
  for (std::int64_t at = thread; at < words;
       at += static_cast<std::int64_t>(kThreads) * gridDim.x) {
    read ^= d_batch[at];
  }
  float value = static_cast<float>(read & 1023u);
  for (std::int64_t round = 0; round < rounds; ++round) value = fmaf(value, 0.999f, 0.5f);
  d_out[thread] = value;
}

}  // namespace

std::uint64_t FixedStepOutBytes(unsigned blocks) {
  return std::uint64_t{blocks == 0 ? kBlocks : blocks} * kThreads * sizeof(float);
}

int LaunchFixedStep(const FixedStep& step, CUstream_st* stream) {
  const memory::KernelShape shape = {dim3(step.blocks == 0 ? kBlocks : step.blocks), kThreads, 0};
  return static_cast<int>(memory::LaunchKernel(
      shape, stream, FixedStepKernel, reinterpret_cast<const std::uint32_t*>(step.d_batch),
      static_cast<std::int64_t>(step.batch_bytes / sizeof(std::uint32_t)), step.rounds,
      reinterpret_cast<float*>(step.d_out)));
}

}  // namespace patchbay::bench
