// Chains that work in float: one gather and everything that needs one pixel in one kernel; contrast
// and blur add kernels over patch-sized scratch.
#include <cuda_runtime.h>

#include "ops/chain/chain_kernel.h"
#include "ops/chain/float_pixels.cuh"
#include "ops/color_jitter/color_jitter_math.h"
#include "ops/colour/od_map_math.h"
#include "ops/gaussian_noise/gaussian_noise_math.h"
#include "ops/stain_normalize/reinhard_math.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
/// Pixels of a row that a thread makes, 16 columns apart: those whose noise is of one Philox block.
constexpr int kRun = kNormalsPerBlock;
constexpr unsigned kMaxBlocksPerSlice = 128;

/// The pixels of one thread: columns `first` + k * kNoiseLanes of a row, as far as it reaches.
struct RunOfPixels {
  std::int64_t row = 0, group = 0, first = 0;
  int lane = 0;

  __device__ std::int64_t Column(int k) const { return first + k * kNoiseLanes; }
};

/// Calls `make` for every run of the block's share of a slice.
template <typename Make>
__device__ void ForEachRun(const SliceShape& shape, const Make& make) {
  const std::int64_t groups = (shape.width + kNoiseGroup - 1) / kNoiseGroup;
  const std::int64_t runs = shape.height * groups * kNoiseLanes;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < runs;
       at += step) {
    RunOfPixels run;
    run.lane = static_cast<int>(at % kNoiseLanes);
    run.group = at / kNoiseLanes % groups;
    run.row = at / kNoiseLanes / groups;
    run.first = run.group * kNoiseGroup + run.lane;
    make(run);
  }
}

template <int kTogether>
using Pixels = DeviceLanes[kRun][kTogether];

/// The scratch of one channel's row.
__device__ float* PlaneRow(const SliceShape& shape, float* d_planes, int channel,
                           std::int64_t row) {
  return d_planes + (channel * shape.height + row) * shape.width;
}

template <int kTogether>
__device__ void LoadPlanes(const SliceShape& shape, const RunOfPixels& run, float* d_planes,
                           int channel, Pixels<kTogether>& value) {
  for (int k = 0; k < kRun; ++k) {
    if (run.Column(k) >= shape.width) continue;
    for (int c = 0; c < kTogether; ++c) {
      value[k][c] = {PlaneRow(shape, d_planes, channel + c, run.row)[run.Column(k)]};
    }
  }
}

template <int kTogether>
__device__ void StorePlanes(const SliceShape& shape, const RunOfPixels& run, float* d_planes,
                            int channel, const Pixels<kTogether>& value) {
  for (int k = 0; k < kRun; ++k) {
    if (run.Column(k) >= shape.width) continue;
    for (int c = 0; c < kTogether; ++c) {
      PlaneRow(shape, d_planes, channel + c, run.row)[run.Column(k)] = value[k][c].v;
    }
  }
}

__device__ void Jitter(const ColorJitter& jitter, int first, int last, float mean, float white,
                       DeviceLanes (&rgb)[3]) {
  const DeviceLanes to_one{1.0f / white}, back{white};
  for (DeviceLanes& x : rgb) x = x * to_one;
  for (int step = first; step < last; ++step) JitterColor(jitter, jitter.order[step], mean, rgb);
  for (DeviceLanes& x : rgb) x = x * back;
}

__device__ void ToSrgb(const IccNode* d_nodes, int grid, DeviceLanes (&rgb)[3]) {
  float level[3] = {rgb[0].v, rgb[1].v, rgb[2].v};
  const auto product = [](float a, float b) { return RoundedProduct::Of(a, b); };
  DeviceToSrgb(d_nodes, grid, product, level);
  for (int c = 0; c < 3; ++c) rgb[c] = {level[c]};
}

__device__ std::uint32_t GreySteps(const DeviceLanes (&rgb)[3], float white) {
  const DeviceLanes to_one{1.0f / white};
  DeviceLanes unit[3];
  for (int c = 0; c < 3; ++c) unit[c] = Within01(rgb[c] * to_one);
  return DeviceLanes::Whole::Nearest(GreyOf01(unit) * DeviceLanes{65536.0f}).v;
}

/// The normals of the run's pixels of one channel, onto channel `c` of `value`.
template <int kTogether>
__device__ void AddNoise(const SliceShape& shape, const FloatSlice& slice, const RunOfPixels& run,
                         int channel, int c, Pixels<kTogether>& value) {
  const std::int64_t groups = (shape.width + kNoiseGroup - 1) / kNoiseGroup;
  const std::int64_t row = slice.rows_before + run.row;
  const std::int64_t block =
      ((row * shape.channels + channel + c) * groups + run.group) * kNoiseLanes + run.lane;
  DeviceLanes::Whole word[4];
  NoiseWords<DeviceLanes>(slice.noise.key, {static_cast<std::uint32_t>(block)}, word);
  const DeviceLanes std{slice.noise.std};
  for (int w = 0; w < 4; ++w) {
    DeviceLanes a, b;
    NormalPair<DeviceLanes>(word[w], a, b);
    value[2 * w][c] = FusedAdd(std, a, value[2 * w][c]);
    value[2 * w + 1][c] = FusedAdd(std, b, value[2 * w + 1][c]);
  }
}

/// Noise, line, casts, and into the slot.
template <int kTogether>
__device__ void Finish(const FloatLaunch& launch, const FloatSlice& slice, const RunOfPixels& run,
                       int channel, Pixels<kTogether>& value) {
  for (int c = 0; c < kTogether; ++c) {
    if (slice.noise.std > 0) AddNoise<kTogether>(launch.shape, slice, run, channel, c, value);
#pragma unroll 1
    for (int k = 0; k < kRun; ++k) {
      if (run.Column(k) >= launch.shape.width) continue;
      float v = value[k][c].v;
      if (launch.scales) v = fmaf(v, launch.slope[channel + c], launch.offset[channel + c]);
      for (int n = 0; n < launch.casts; ++n) {
        v = CastValue(CastBits(v, launch.cast[n]), launch.cast[n]);
      }
      StoreElement(launch.shape, slice.d_out, run.row, run.Column(k), channel + c, v);
    }
  }
}

/// Colours as far as they need one pixel.
template <int kTogether>
__device__ void Colour(const FloatLaunch& launch, const FloatSlice& slice,
                       DeviceLanes (&value)[kTogether]) {
  if constexpr (kTogether == 3) {
    if (slice.d_icc != nullptr) ToSrgb(slice.d_icc, launch.icc_grid, value);
    if (slice.maps_lab) MapLab(slice.lab, value);
    if (slice.maps_od) MapOd(slice.od, value);
    if (slice.jitters) Jitter(slice.jitter, 0, slice.before_mean, 0, launch.white, value);
  }
}

/// From the source to the slot, or to the scratch of a slice that goes on.
template <typename Source, int kTogether>
__global__ void __launch_bounds__(kThreads) GatherKernel(FloatLaunch launch) {
  __shared__ unsigned long long sm_grey;
  if (threadIdx.x == 0) sm_grey = 0;
  __syncthreads();
  FloatSlice& slice = launch.d_slices[blockIdx.y];
  unsigned long long grey = 0;
  ForEachRun(launch.shape, [&](const RunOfPixels& run) {
    for (int channel = 0; channel < launch.shape.channels; channel += kTogether) {
      Pixels<kTogether> value = {};
#pragma unroll 1  // the pixels lie in local memory: unrolled, the code is eight times as long
      for (int k = 0; k < kRun; ++k) {
        if (run.Column(k) >= launch.shape.width) continue;
        Gather<Source>(launch.shape, slice, run.row, run.Column(k), channel, value[k]);
        Colour(launch, slice, value[k]);
        if constexpr (kTogether == 3) {
          if (slice.needs_mean()) grey += GreySteps(value[k], launch.white);
        }
      }
      if (slice.d_planes == nullptr) {
        Finish<kTogether>(launch, slice, run, channel, value);
      } else {
        StorePlanes<kTogether>(launch.shape, run, slice.d_planes, channel, value);
      }
    }
  });
  if (!slice.needs_mean()) return;
  atomicAdd(&sm_grey, grey);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&slice.grey_sum, sm_grey);
}

/// The rest of the jitter, about the mean grey of the whole slice.
__global__ void __launch_bounds__(kThreads) ContrastKernel(FloatLaunch launch) {
  const FloatSlice& slice = launch.d_slices[blockIdx.y];
  if (!slice.needs_mean()) return;
  const auto pixels = static_cast<double>(launch.shape.height * launch.shape.width);
  const auto mean = static_cast<float>(static_cast<double>(slice.grey_sum) / (65'536 * pixels));
  ForEachRun(launch.shape, [&](const RunOfPixels& run) {
    Pixels<3> value = {};
    LoadPlanes<3>(launch.shape, run, slice.d_planes, 0, value);
#pragma unroll 1
    for (int k = 0; k < kRun; ++k) {
      Jitter(slice.jitter, slice.before_mean, kColorSteps, mean, launch.white, value[k]);
    }
    if (slice.blur_radius == 0) {
      Finish<3>(launch, slice, run, 0, value);
    } else {
      StorePlanes<3>(launch.shape, run, slice.d_planes, 0, value);
    }
  });
}

/// The blurred value at `at` of a line of `pixels` that lie `stride` floats apart.
__device__ DeviceLanes Blurred(const FloatSlice& slice, const float* d_line, std::int64_t stride,
                               std::int64_t at, std::int64_t pixels) {
  const int radius = slice.blur_radius;
  DeviceLanes sum{};
  for (int k = 0; k <= 2 * radius; ++k) {
    const DeviceLanes value{d_line[MirroredPlace(at + k - radius, pixels) * stride]};
    const DeviceLanes weight{slice.blur_weight[k]};
    sum = k == 0 ? weight * value : FusedAdd(weight, value, sum);
  }
  return sum;
}

/// Along rows, from the first image of the scratch to the second.
__global__ void __launch_bounds__(kThreads) BlurRowsKernel(FloatLaunch launch) {
  const FloatSlice& slice = launch.d_slices[blockIdx.y];
  const SliceShape& shape = launch.shape;
  if (slice.blur_radius == 0) return;
  float* const d_second = slice.d_planes + shape.channels * shape.height * shape.width;
  ForEachRun(shape, [&](const RunOfPixels& run) {
    for (int c = 0; c < shape.channels; ++c) {
      const float* d_row = PlaneRow(shape, slice.d_planes, c, run.row);
#pragma unroll 1
      for (int k = 0; k < kRun; ++k) {
        const std::int64_t j = run.Column(k);
        if (j >= shape.width) continue;
        PlaneRow(shape, d_second, c, run.row)[j] = Blurred(slice, d_row, 1, j, shape.width).v;
      }
    }
  });
}

/// Along columns, from the second image to the slot.
__global__ void __launch_bounds__(kThreads) BlurColumnsKernel(FloatLaunch launch) {
  const FloatSlice& slice = launch.d_slices[blockIdx.y];
  const SliceShape& shape = launch.shape;
  if (slice.blur_radius == 0) return;
  float* const d_second = slice.d_planes + shape.channels * shape.height * shape.width;
  ForEachRun(shape, [&](const RunOfPixels& run) {
    for (int c = 0; c < shape.channels; ++c) {
      Pixels<1> value = {};
#pragma unroll 1
      for (int k = 0; k < kRun; ++k) {
        const std::int64_t j = run.Column(k);
        if (j >= shape.width) continue;
        const float* d_column = PlaneRow(shape, d_second, c, 0) + j;
        value[k][0] = Blurred(slice, d_column, shape.width, run.row, shape.height);
      }
      Finish<1>(launch, slice, run, c, value);
    }
  });
}

memory::KernelShape ShapeOf(const FloatLaunch& launch) {
  const SliceShape& shape = launch.shape;
  const std::int64_t groups = (shape.width + kNoiseGroup - 1) / kNoiseGroup;
  const std::int64_t runs = shape.height * groups * kNoiseLanes;
  const std::int64_t blocks = (runs + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerSlice ? static_cast<unsigned>(blocks) : kMaxBlocksPerSlice,
                  static_cast<unsigned>(launch.count));
  return {grid, kThreads, 0};
}

template <typename Source>
cudaError_t LaunchGather(const FloatLaunch& launch, cudaStream_t stream) {
  const memory::KernelShape shape = ShapeOf(launch);
  if (launch.shape.channels == 3) {
    return memory::LaunchKernel(shape, stream, GatherKernel<Source, 3>, launch);
  }
  return memory::LaunchKernel(shape, stream, GatherKernel<Source, 1>, launch);
}

cudaError_t LaunchGatherOfType(const FloatLaunch& launch, cudaStream_t stream) {
  switch (launch.shape.source) {
    case SourceType::kUint8:
      return LaunchGather<std::uint8_t>(launch, stream);
    case SourceType::kUint16:
      return LaunchGather<std::uint16_t>(launch, stream);
    case SourceType::kInt16:
      return LaunchGather<std::int16_t>(launch, stream);
    default:
      return LaunchGather<float>(launch, stream);
  }
}

}  // namespace

int LaunchFloat(const FloatLaunch& launch, CUstream_st* stream) {
  const memory::KernelShape shape = ShapeOf(launch);
  cudaError_t error = LaunchGatherOfType(launch, stream);
  if (error == cudaSuccess && launch.any_mean) {
    error = memory::LaunchKernel(shape, stream, ContrastKernel, launch);
  }
  if (error == cudaSuccess && launch.any_blur) {
    error = memory::LaunchKernel(shape, stream, BlurRowsKernel, launch);
    if (error == cudaSuccess) {
      error = memory::LaunchKernel(shape, stream, BlurColumnsKernel, launch);
    }
  }
  return static_cast<int>(error);
}

}  // namespace patchbay::ops
