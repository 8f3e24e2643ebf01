#include <cuda_runtime.h>

#include "ops/chain/chain_kernel.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
/// Finished pixels of one row that a thread makes: 16 bytes of a float16 plane.
constexpr int kRun = 8;
/// Blocks a slice; enough to fill the largest GPU with one launch of 32.
constexpr unsigned kMaxBlocksPerSlice = 256;

/// kRun elements that one store writes.
template <typename Element>
struct alignas(kRun * sizeof(Element) > 16 ? 16 : kRun * sizeof(Element)) ElementRun {
  Element value[kRun];
};

/// Channels whose tables are in shared memory at once.
constexpr int kTables = 16;

/// One thread makes kRun neighbouring pixels of a finished row, all channels.
template <typename Element>
__global__ void TableKernel(TableLaunch launch) {
  auto* sm_table = memory::DynamicShared<std::uint32_t>();
  const SliceShape& shape = launch.shape;
  const int channels = shape.channels;
  const MovedSlice& slice = launch.d_slices[blockIdx.y];
  const WindowMap window = slice.window;
  const auto* d_source = reinterpret_cast<const std::uint8_t*>(slice.d_source);
  const std::int64_t width = shape.width;
  const std::int64_t runs_per_row = (width + kRun - 1) / kRun;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  auto* d_out = reinterpret_cast<Element*>(slice.d_out);
  const bool whole = shape.planar && width % kRun == 0 && shape.channel_elements % kRun == 0 &&
                     reinterpret_cast<std::uintptr_t>(d_out) % alignof(ElementRun<Element>) == 0;
  for (int group = 0; group < channels; group += kTables) {
    const int end = group + kTables < channels ? group + kTables : channels;
    if (group != 0) __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 256 * (end - group); i += kThreads) {
      sm_table[i] = launch.d_table[256 * group + i];
    }
    __syncthreads();
    for (std::int64_t run = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
         run < shape.height * runs_per_row; run += step) {
      const std::int64_t i = run / runs_per_row, first = run % runs_per_row * kRun;
      const std::int64_t count = width - first < kRun ? width - first : kRun;
      std::int64_t source[kRun];
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        if (k >= count) continue;
        const PixelPlace place = SourceOf(window, i, first + k);
        source[k] = (place.y * shape.source_width + place.x) * channels;
      }
      for (int c = group; c < end; ++c) {
        ElementRun<Element> made;
#pragma unroll
        for (int k = 0; k < kRun; ++k) {
          if (k < count) {
            made.value[k] =
                static_cast<Element>(sm_table[(c - group) * 256 + __ldg(d_source + source[k] + c)]);
          }
        }
        const std::int64_t planar_at = c * shape.channel_elements + i * width + first;
        if (whole) {
          *reinterpret_cast<ElementRun<Element>*>(d_out + planar_at) = made;
          continue;
        }
#pragma unroll
        for (int k = 0; k < kRun; ++k) {
          if (k >= count) continue;
          d_out[shape.planar ? planar_at + k : (i * width + first + k) * channels + c] =
              made.value[k];
        }
      }
    }
  }
}

template <typename Element>
int Launch(const TableLaunch& launch, cudaStream_t stream) {
  const SliceShape& shape = launch.shape;
  const std::int64_t runs = shape.height * ((shape.width + kRun - 1) / kRun);
  const std::int64_t blocks = (runs + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerSlice ? static_cast<unsigned>(blocks) : kMaxBlocksPerSlice,
                  static_cast<unsigned>(launch.count));
  const int tables = shape.channels < kTables ? shape.channels : kTables;
  const std::size_t table_bytes = sizeof(std::uint32_t) * 256 * static_cast<unsigned>(tables);
  return static_cast<int>(
      memory::LaunchKernel({grid, kThreads, table_bytes}, stream, TableKernel<Element>, launch));
}

}  // namespace

int LaunchTables(const TableLaunch& launch, CUstream_st* stream) {
  switch (launch.shape.to) {
    case CastTo::kUint8:
      return Launch<std::uint8_t>(launch, stream);
    case CastTo::kFloat32:
      return Launch<std::uint32_t>(launch, stream);
    default:
      return Launch<std::uint16_t>(launch, stream);
  }
}

}  // namespace patchbay::ops
