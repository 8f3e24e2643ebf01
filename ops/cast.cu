#include "ops/cast_math.h"
#include "ops/gather.cuh"

namespace patchbay::ops {
namespace {

__global__ void CastKernel(CastTo to, Strided in, Strided out) {
  const std::int64_t elements = out.height * out.width * out.channels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    const std::int64_t c = i % out.channels, x = i / out.channels % out.width;
    const std::int64_t y = i / out.channels / out.width;
    const float value = *reinterpret_cast<const float*>(in.At(y, x, c));
    const std::uint32_t bits = CastBits(value, to);
    std::byte* d_to = out.At(y, x, c);
    for (int b = 0; b < out.element_bytes; ++b) d_to[b] = static_cast<std::byte>(bits >> (8 * b));
  }
}

}  // namespace

int LaunchCastKernel(CastTo to, const Strided& d_in, const Strided& d_out, cudaStream_t stream) {
  const std::int64_t elements = d_out.height * d_out.width * d_out.channels;
  CastKernel<<<GatherBlocks(elements), kGatherThreads, 0, stream>>>(to, d_in, d_out);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace patchbay::ops
