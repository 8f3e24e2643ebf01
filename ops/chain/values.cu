// Kernels of pixels that move as they are, value by value: sources that no table of 256 values
// describes, and labels.
#include <cuda_runtime.h>

#include "ops/chain/chain_kernel.h"
#include "ops/chain/float_pixels.cuh"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMaxBlocksPerSlice = 256;

/// Calls `make` for every pixel of the block's share of a slice.
template <typename Make>
__device__ void ForEachPixel(const SliceShape& shape, const Make& make) {
  const std::int64_t pixels = shape.height * shape.width;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       at < pixels; at += step) {
    make(at / shape.width, at % shape.width);
  }
}

/// As ValueSteps::Apply: in double from op to op.
__device__ double Applied(const ValueLaunch& launch, double value, int channel) {
  for (int s = 0; s < launch.steps; ++s) {
    const ValueStep& step = launch.d_steps[s];
    if (step.casts) {
      value = CastValue(CastBits(static_cast<float>(value), step.to), step.to);
      continue;
    }
    const NormalizeChannel& k = step.channel[channel];
    value = NormalizeValue(value, k.scale, k.mean, k.std);
  }
  return value;
}

template <typename Source>
__global__ void __launch_bounds__(kThreads) ValuesKernel(ValueLaunch launch) {
  const MovedSlice& slice = launch.d_slices[blockIdx.y];
  const SliceShape& shape = launch.shape;
  const auto* source = reinterpret_cast<const Source*>(slice.d_source);
  ForEachPixel(shape, [&](std::int64_t i, std::int64_t j) {
    const PixelPlace place = SourceOf(slice.window, i, j);
    const Source* at = source + (place.y * shape.source_width + place.x) * shape.channels;
    for (int c = 0; c < shape.channels; ++c) {
      const double value = Applied(launch, static_cast<double>(__ldg(at + c)), c);
      StoreElement(shape, slice.d_out, i, j, c, static_cast<float>(value));
    }
  });
}

__global__ void __launch_bounds__(kThreads) LabelsKernel(LabelLaunch launch) {
  const FloatSlice& slice = launch.d_slices[blockIdx.y];
  const auto* labels = reinterpret_cast<const std::uint8_t*>(slice.d_source);
  auto* d_out = reinterpret_cast<std::uint8_t*>(slice.d_out);
  ForEachPixel(launch.shape, [&](std::int64_t i, std::int64_t j) {
    PixelPlace place;
    if (slice.geometry.whole_pixels) {
      place = SourceOf(slice.geometry.window, i, j);
    } else {
      const SamplePlace at = PlaceOf(slice.geometry, i, j);
      place = {static_cast<std::int64_t>(at.y.v + 0.5f), static_cast<std::int64_t>(at.x.v + 0.5f)};
    }
    d_out[i * launch.shape.width + j] =
        __ldg(labels + place.y * launch.shape.source_width + place.x);
  });
}

template <typename Launch>
memory::KernelShape ShapeOf(const Launch& launch) {
  const std::int64_t pixels = launch.shape.height * launch.shape.width;
  const std::int64_t blocks = (pixels + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerSlice ? static_cast<unsigned>(blocks) : kMaxBlocksPerSlice,
                  static_cast<unsigned>(launch.count));
  return {grid, kThreads, 0};
}

template <typename Source>
int LaunchOfType(const ValueLaunch& launch, cudaStream_t stream) {
  return static_cast<int>(
      memory::LaunchKernel(ShapeOf(launch), stream, ValuesKernel<Source>, launch));
}

}  // namespace

int LaunchValues(const ValueLaunch& launch, CUstream_st* stream) {
  switch (launch.shape.source) {
    case SourceType::kUint8:
      return LaunchOfType<std::uint8_t>(launch, stream);
    case SourceType::kUint16:
      return LaunchOfType<std::uint16_t>(launch, stream);
    case SourceType::kInt16:
      return LaunchOfType<std::int16_t>(launch, stream);
    default:
      return LaunchOfType<float>(launch, stream);
  }
}

int LaunchLabels(const LabelLaunch& launch, CUstream_st* stream) {
  return static_cast<int>(memory::LaunchKernel(ShapeOf(launch), stream, LabelsKernel, launch));
}

}  // namespace patchbay::ops
