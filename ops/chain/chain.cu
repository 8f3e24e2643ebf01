#include <cuda_runtime.h>

#include "ops/chain/chain_kernel.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
/// Finished pixels of one row that a thread makes: 16 bytes of a float16 plane.
constexpr int kRun = 8;
/// Blocks a patch; enough to fill the largest GPU with one launch of 32 patches.
constexpr unsigned kMaxBlocksPerPatch = 256;

/// What a store of kRun elements is made of.
template <typename Element>
struct alignas(kRun * sizeof(Element) > 16 ? 16 : kRun * sizeof(Element)) ElementRun {
  Element value[kRun];
};

__device__ std::int64_t SourceOffset(const WindowMap& w, std::int64_t i, std::int64_t j,
                                     std::int64_t source_width) {
  const std::int64_t window_height = w.transpose ? w.out_width : w.out_height;
  const std::int64_t window_width = w.transpose ? w.out_height : w.out_width;
  const std::int64_t y = w.transpose ? j : i, x = w.transpose ? i : j;
  const std::int64_t source_y = w.source_y + (w.reverse_y ? window_height - 1 - y : y);
  const std::int64_t source_x = w.source_x + (w.reverse_x ? window_width - 1 - x : x);
  return source_y * source_width + source_x;
}

/// One thread makes kRun neighbouring pixels of a finished row, all channels.
template <typename Element>
__global__ void ChainKernel(ChainKernelBatch batch) {
  auto* sm_table = memory::DynamicShared<std::uint32_t>();
  for (int i = static_cast<int>(threadIdx.x); i < 256 * batch.channels; i += kThreads) {
    sm_table[i] = batch.d_table[i];
  }
  __syncthreads();
  const ChainKernelPatch& patch = batch.patch[blockIdx.y];
  const WindowMap& window = patch.window;
  const int channels = batch.channels;
  const std::int64_t height = window.out_height, width = window.out_width;
  const std::int64_t runs_per_row = (width + kRun - 1) / kRun;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  auto* d_out = reinterpret_cast<Element*>(patch.d_out);
  const bool whole = batch.planar && width % kRun == 0 &&
                     reinterpret_cast<std::uintptr_t>(d_out) % alignof(ElementRun<Element>) == 0;
  for (std::int64_t run = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       run < height * runs_per_row; run += step) {
    const std::int64_t i = run / runs_per_row, first = run % runs_per_row * kRun;
    const std::int64_t count = width - first < kRun ? width - first : kRun;
    std::int64_t source[kRun];
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (k < count) {
        source[k] = SourceOffset(window, i, first + k, batch.source_width) * channels;
      }
    }
    for (int c = 0; c < channels; ++c) {
      ElementRun<Element> made;
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        if (k < count) {
          made.value[k] =
              static_cast<Element>(sm_table[c * 256 + __ldg(patch.d_source + source[k] + c)]);
        }
      }
      if (whole) {
        *reinterpret_cast<ElementRun<Element>*>(d_out + (c * height + i) * width + first) = made;
        continue;
      }
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        if (k >= count) continue;
        const std::int64_t at = batch.planar ? (c * height + i) * width + first + k
                                             : (i * width + first + k) * channels + c;
        d_out[at] = made.value[k];
      }
    }
  }
}

template <typename Element>
int Launch(const ChainKernelBatch& batch, cudaStream_t stream) {
  const WindowMap& window = batch.patch[0].window;
  const std::int64_t runs = window.out_height * ((window.out_width + kRun - 1) / kRun);
  const std::int64_t blocks = (runs + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerPatch ? static_cast<unsigned>(blocks) : kMaxBlocksPerPatch,
                  static_cast<unsigned>(batch.count));
  const std::size_t table_bytes =
      sizeof(std::uint32_t) * 256 * static_cast<unsigned>(batch.channels);
  return static_cast<int>(
      memory::LaunchKernel({grid, kThreads, table_bytes}, stream, ChainKernel<Element>, batch));
}

}  // namespace

int LaunchChainKernel(const ChainKernelBatch& batch, CUstream_st* stream) {
  switch (batch.element_bytes) {
    case 1:
      return Launch<std::uint8_t>(batch, stream);
    case 2:
      return Launch<std::uint16_t>(batch, stream);
    default:
      return Launch<std::uint32_t>(batch, stream);
  }
}

}  // namespace patchbay::ops
