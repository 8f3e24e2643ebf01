#include "ops/gather.cuh"
#include "ops/normalize_math.h"

namespace patchbay::ops {
namespace {

__global__ void NormalizeKernel(NormalizeConstants constants, Strided in, Strided out) {
  const std::int64_t elements = out.height * out.width * out.channels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    const std::int64_t c = i % out.channels, x = i / out.channels % out.width;
    const std::int64_t y = i / out.channels / out.width;
    const std::byte* d_from = in.At(y, x, c);
    const double value = in.element_bytes == 1
                             ? static_cast<double>(*reinterpret_cast<const std::uint8_t*>(d_from))
                             : static_cast<double>(*reinterpret_cast<const float*>(d_from));
    const NormalizeChannel& k = constants.channel[c];
    *reinterpret_cast<float*>(out.At(y, x, c)) =
        static_cast<float>(NormalizeValue(value, k.scale, k.mean, k.std));
  }
}

}  // namespace

int LaunchNormalizeKernel(const NormalizeConstants& constants, const Strided& d_in,
                          const Strided& d_out, cudaStream_t stream) {
  const std::int64_t elements = d_out.height * d_out.width * d_out.channels;
  NormalizeKernel<<<GatherBlocks(elements), kGatherThreads, 0, stream>>>(constants, d_in, d_out);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace patchbay::ops
