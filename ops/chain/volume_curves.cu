// What a chain of volumes does with whole patches: sums over them, contrast, low_resolution, gamma,
// and the way to the slot. Lines that follow sums are applied by the kernel that reads next.
#include <cuda_runtime.h>

#include "ops/chain/volume_voxels.cuh"
#include "ops/contrast/contrast_math.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMaxBlocksPerPatch = 128;
constexpr int kRowsAtOnce = kThreads / kSumLanes;

/// What is summed: the values before contrast, before a gamma, or after its power.
struct Moment {
  bool of_contrast = false, after_power = false;
  int gamma = 0;

  __device__ bool IsOf(const DeviceVolume& volume) const {
    if (of_contrast) return volume.contrast != 1;
    return gamma < volume.gammas && (!after_power || volume.d_gammas[gamma].retains);
  }
};

/// The line that is not applied yet when gamma `gamma` comes, or null.
__device__ const LineWithin* LineBefore(const DeviceVolume& volume, int gamma) {
  const bool has = gamma == 0 ? volume.contrast != 1 && volume.d_taps == nullptr
                              : volume.d_gammas[gamma - 1].HasLine();
  return has ? volume.d_lines + gamma : nullptr;
}

/// A value as a gamma's power takes it.
__device__ DeviceLanes BeforePower(const DeviceVolume& volume, int gamma, std::int64_t at) {
  DeviceLanes value{volume.d_values()[at]};
  const LineWithin* line = LineBefore(volume, gamma);
  if (line != nullptr) value = Lined(*line, value);
  if (volume.d_gammas[gamma].inverts) value = Lined(FreeLine(-1, 0), value);
  return value;
}

__device__ DeviceLanes ValueAt(const DeviceVolume& volume, const Moment& moment, std::int64_t at) {
  if (moment.of_contrast) return {volume.d_blurred()[at]};
  if (moment.after_power) return {volume.d_values()[at]};
  return BeforePower(volume, moment.gamma, at);
}

/// The sums of each row: sixteen threads a row.
__global__ void __launch_bounds__(kThreads) VolumeSumsKernel(VolumeLaunch launch, Moment moment) {
  __shared__ float sm_lane[4][kThreads];
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  if (!moment.IsOf(volume)) return;
  const DeviceLanes shift = ValueAt(volume, moment, 0);
  const int lane = static_cast<int>(threadIdx.x) % kSumLanes;
  const std::int64_t rows = launch.patch.Rows(), width = launch.patch.x;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRowsAtOnce; first < rows;
       first += std::int64_t{gridDim.x} * kRowsAtOnce) {
    const std::int64_t row = first + threadIdx.x / kSumLanes;
    if (row < rows) {
      DeviceLanes sum{}, squares{}, least = ValueAt(volume, moment, row * width), most = least;
      for (std::int64_t x = lane; x < width; x += kSumLanes) {
        const DeviceLanes value = ValueAt(volume, moment, row * width + x), d = value - shift;
        sum = sum + d;
        squares = FusedAdd(d, d, squares);
        least = Min(least, value);
        most = Max(most, value);
      }
      sm_lane[0][threadIdx.x] = sum.v;
      sm_lane[1][threadIdx.x] = squares.v;
      sm_lane[2][threadIdx.x] = least.v;
      sm_lane[3][threadIdx.x] = most.v;
    }
    __syncthreads();
    if (row < rows && lane == 0) {
      const unsigned at = threadIdx.x;
      volume.d_row_sums[row] =
          JoinedLanes(&sm_lane[0][at], &sm_lane[1][at], &sm_lane[2][at], &sm_lane[3][at]);
    }
    __syncthreads();
  }
}

/// What the sums come to: the line of contrast, or of a gamma, or its curve.
__device__ void Conclude(const VolumeLaunch& launch, const DeviceVolume& volume,
                         const Moment& moment, const PatchSums& sums) {
  const float shift = ValueAt(volume, moment, 0).v;
  const auto stats =
      StatsOf<RoundedProduct>(sums, shift, static_cast<double>(launch.patch.Voxels()));
  if (moment.of_contrast) {
    volume.d_lines[0] = ContrastLine(stats, volume.contrast);
    return;
  }
  const DeviceGamma& gamma = volume.d_gammas[moment.gamma];
  LineWithin& after = volume.d_lines[moment.gamma + 1];
  VolumeState& state = *volume.d_state;
  if (moment.after_power) {
    after = RetainingLine<RoundedProduct>(state.before, stats, gamma.inverts ? -1.0f : 1.0f);
    return;
  }
  state.before = stats;
  state.curve = CurveOf(stats, gamma.exponent);
  if (gamma.inverts) after = FreeLine(-1, 0);
}

/// One block a patch: a thread a slice, then the slices in order.
__global__ void __launch_bounds__(kThreads) VolumeTotalKernel(VolumeLaunch launch, Moment moment) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.x];
  if (!moment.IsOf(volume)) return;
  PatchSums* const d_sums = volume.d_row_sums;
  const std::int64_t height = launch.patch.y;
  for (std::int64_t z = threadIdx.x; z < launch.patch.z; z += kThreads) {
    PatchSums slice = d_sums[z * height];
    for (std::int64_t y = 1; y < height; ++y) Join(slice, d_sums[z * height + y]);
    d_sums[z * height] = slice;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  PatchSums patch = d_sums[0];
  for (std::int64_t z = 1; z < launch.patch.z; ++z) Join(patch, d_sums[z * height]);
  Conclude(launch, volume, moment, patch);
}

/// Calls `make` with the places of the block's share of a patch.
template <typename Make>
__device__ void ForEachVoxel(const VolumeLaunch& launch, const Make& make) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
       at < launch.patch.Voxels(); at += step) {
    make(at);
  }
}

/// Down to the nearest voxel and up again between voxels, along y, then x, then z.
__global__ void __launch_bounds__(kThreads) VolumeCoarseKernel(VolumeLaunch launch) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  if (volume.d_taps == nullptr) return;
  const DeviceExtent& patch = launch.patch;
  const float* const d_from = volume.d_blurred();
  const auto blend = [](const CoarseTap& tap, DeviceLanes a, DeviceLanes b) {
    return a * DeviceLanes{tap.first_part} + b * DeviceLanes{tap.second_part};
  };
  ForEachVoxel(launch, [&](std::int64_t at) {
    const std::int64_t row = at / patch.x;
    const CoarseTap z = volume.d_taps[row / patch.y];
    const CoarseTap y = volume.d_taps[patch.z + row % patch.y];
    const CoarseTap x = volume.d_taps[patch.z + patch.y + at % patch.x];
    const auto value = [&](int from_z, int from_y, int from_x) {
      const DeviceLanes v{d_from[(from_z * patch.y + from_y) * patch.x + from_x]};
      return volume.contrast != 1 ? Lined(volume.d_lines[0], v) : v;
    };
    const auto along_y = [&](int from_z, int from_x) {
      return blend(y, value(from_z, y.first, from_x), value(from_z, y.second, from_x));
    };
    const auto along_x = [&](int from_z) {
      return blend(x, along_y(from_z, x.first), along_y(from_z, x.second));
    };
    volume.d_values()[at] = blend(z, along_x(z.first), along_x(z.second)).v;
  });
}

__global__ void __launch_bounds__(kThreads) VolumePowerKernel(VolumeLaunch launch, int gamma) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  if (gamma >= volume.gammas) return;
  const PowerCurve curve = volume.d_state->curve;
  ForEachVoxel(launch, [&](std::int64_t at) {
    volume.d_values()[at] = Curved(curve, BeforePower(volume, gamma, at)).v;
  });
}

__global__ void __launch_bounds__(kThreads) VolumeFinishKernel(VolumeLaunch launch) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  if (volume.d_planes[0] == nullptr) return;
  const LineWithin* line = LineBefore(volume, volume.gammas);
  ForEachVoxel(launch, [&](std::int64_t at) {
    DeviceLanes value{volume.d_values()[at]};
    if (line != nullptr) value = Lined(*line, value);
    StoreVoxel(launch, volume.d_out, at, value.v);
  });
}

memory::KernelShape ShapeOf(const VolumeLaunch& launch, std::int64_t blocks) {
  const dim3 grid(blocks < kMaxBlocksPerPatch ? static_cast<unsigned>(blocks) : kMaxBlocksPerPatch,
                  static_cast<unsigned>(launch.count));
  return {grid, kThreads, 0};
}

memory::KernelShape VoxelsOf(const VolumeLaunch& launch) {
  return ShapeOf(launch, (launch.patch.Voxels() + kThreads - 1) / kThreads);
}

cudaError_t LaunchSums(const VolumeLaunch& launch, const Moment& moment, cudaStream_t stream) {
  const memory::KernelShape rows =
      ShapeOf(launch, (launch.patch.Rows() + kRowsAtOnce - 1) / kRowsAtOnce);
  const cudaError_t error = memory::LaunchKernel(rows, stream, VolumeSumsKernel, launch, moment);
  if (error != cudaSuccess) return error;
  const memory::KernelShape patches{dim3(static_cast<unsigned>(launch.count)), kThreads, 0};
  return memory::LaunchKernel(patches, stream, VolumeTotalKernel, launch, moment);
}

cudaError_t LaunchGamma(const VolumeLaunch& launch, int gamma, cudaStream_t stream) {
  cudaError_t error = LaunchSums(launch, {false, false, gamma}, stream);
  if (error == cudaSuccess) {
    error = memory::LaunchKernel(VoxelsOf(launch), stream, VolumePowerKernel, launch, gamma);
  }
  if (error == cudaSuccess && launch.retains) {
    error = LaunchSums(launch, {false, true, gamma}, stream);
  }
  return error;
}

}  // namespace

int LaunchVolumeCurves(const VolumeLaunch& launch, CUstream_st* stream) {
  if (!launch.in_planes) return static_cast<int>(cudaSuccess);
  cudaError_t error = cudaSuccess;
  if (launch.contrasts) error = LaunchSums(launch, {true, false, 0}, stream);
  if (error == cudaSuccess && launch.coarse) {
    error = memory::LaunchKernel(VoxelsOf(launch), stream, VolumeCoarseKernel, launch);
  }
  for (int gamma = 0; gamma < launch.gammas && error == cudaSuccess; ++gamma) {
    error = LaunchGamma(launch, gamma, stream);
  }
  if (error == cudaSuccess) {
    error = memory::LaunchKernel(VoxelsOf(launch), stream, VolumeFinishKernel, launch);
  }
  return static_cast<int>(error);
}

}  // namespace patchbay::ops
