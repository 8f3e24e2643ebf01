// The kernel of every op that only moves pixels; the op gives the map. Device code only.
#pragma once

#include <cuda_runtime.h>

#include "ops/strided.h"

namespace patchbay::ops {

inline constexpr int kGatherThreads = 256;
inline constexpr std::int64_t kGatherMaxBlocks = 65'535;

template <typename Source>
__global__ void GatherKernel(Strided in, Strided out, Source source) {
  const std::int64_t pixels = out.height * out.width;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < pixels; i += step) {
    const PixelPlace to = {i / out.width, i % out.width};
    const PixelPlace from = source(to);
    for (std::int64_t c = 0; c < out.channels; ++c) {
      const std::byte* d_from = in.At(from.y, from.x, c);
      std::byte* d_to = out.At(to.y, to.x, c);
      for (int b = 0; b < out.element_bytes; ++b) d_to[b] = d_from[b];
    }
  }
}

/// Blocks for `items` of a grid-stride loop.
inline unsigned GatherBlocks(std::int64_t items) {
  const std::int64_t blocks = (items + kGatherThreads - 1) / kGatherThreads;
  return static_cast<unsigned>(blocks < kGatherMaxBlocks ? blocks : kGatherMaxBlocks);
}

/// Queues the copy; returns cudaGetLastError's number. Does not synchronise.
template <typename Source>
int LaunchGather(const Strided& in, const Strided& out, const Source& source, cudaStream_t stream) {
  GatherKernel<<<GatherBlocks(out.height * out.width), kGatherThreads, 0, stream>>>(in, out,
                                                                                    source);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace patchbay::ops
