// Chains of volumes: one gather and everything that needs one voxel in one kernel, straight to the
// slot where no op needs more; smoothing before it and blur after it, an axis a kernel.
#include <cuda_runtime.h>

#include "ops/chain/volume_voxels.cuh"
#include "ops/gaussian_noise/gaussian_noise_math.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

constexpr int kThreads = 256;
/// Voxels of a row that a thread makes, 16 columns apart: those whose noise is of one Philox block.
constexpr int kRun = kNormalsPerBlock;
constexpr unsigned kMaxBlocksPerPatch = 128;
/// Rows that the runs of a block may reach into at once.
constexpr int kRowsAtOnce = kThreads / kNoiseLanes;

/// The runs of rows that the threads of a block make at once.
struct Tile {
  std::int64_t groups = 0, first_run = 0, runs = 0;

  __device__ std::int64_t RowOf(std::int64_t run) const { return run / (groups * kNoiseLanes); }
  __device__ std::int64_t first_row() const { return RowOf(first_run); }
  __device__ int rows() const {
    const std::int64_t end = first_run + kThreads < runs ? first_run + kThreads : runs;
    return static_cast<int>(RowOf(end - 1) - first_row()) + 1;
  }
};

/// Calls make(row, points of the row, first column, block of noise) for the block's share of a
/// patch. All threads of the block call it.
template <typename Make>
__device__ void ForEachRun(const VolumeLaunch& launch, const DeviceGeometry& geometry,
                           const Make& make) {
  __shared__ RowOfPoints sm_points[kRowsAtOnce];
  const std::int64_t groups = (launch.patch.x + kNoiseGroup - 1) / kNoiseGroup;
  Tile tile{groups, 0, launch.patch.Rows() * groups * kNoiseLanes};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (tile.first_run = std::int64_t{blockIdx.x} * kThreads; tile.first_run < tile.runs;
       tile.first_run += step) {
    const std::int64_t first_row = tile.first_row();
    const int points = geometry.points;
    for (int i = static_cast<int>(threadIdx.x); i < tile.rows() * 3 * points; i += kThreads) {
      const std::int64_t row = first_row + i / (3 * points);
      const int axis = i / points % 3, point = i % points;
      sm_points[row - first_row][axis][point] =
          PointOfRow(geometry, axis, point, row / launch.patch.y, row % launch.patch.y);
    }
    if (points != 0) __syncthreads();
    const std::int64_t run = tile.first_run + threadIdx.x;
    if (run < tile.runs) {
      const std::int64_t row = tile.RowOf(run), group = run / kNoiseLanes % groups;
      const std::int64_t column = group * kNoiseGroup + run % kNoiseLanes;
      make(row, &sm_points[row - first_row], column, static_cast<std::uint32_t>(run));
    }
    if (points != 0) __syncthreads();
  }
}

/// Adds the normals of a run to its values.
__device__ void AddNoise(const PatchNoise& noise, std::uint32_t block, DeviceLanes (&value)[kRun]) {
  DeviceLanes::Whole word[4];
  NoiseWords<DeviceLanes>(noise.key, {block}, word);
  const DeviceLanes std{noise.std};
  for (int w = 0; w < 4; ++w) {
    DeviceLanes a, b;
    NormalPair<DeviceLanes>(word[w], a, b);
    value[2 * w] = FusedAdd(std, a, value[2 * w]);
    value[2 * w + 1] = FusedAdd(std, b, value[2 * w + 1]);
  }
}

template <typename Source>
__device__ DeviceLanes Gathered(const VolumeLaunch& launch, const DeviceGeometry& geometry,
                                const RowOfPoints* points, std::int64_t row, std::int64_t x) {
  const std::int64_t z = row / launch.patch.y, y = row % launch.patch.y;
  const auto* source = reinterpret_cast<const Source*>(geometry.d_source);
  if (geometry.whole_voxels) {
    const std::int64_t at = MirroredVoxel(geometry, launch.patch, z, y, x);
    return {static_cast<float>(__ldg(source + at))};
  }
  const VoxelPlace place = PlaceOf(geometry, points, z, y, x);
  return geometry.d_smooth[0] != nullptr ? Sampled(geometry.d_smooth[0], geometry, place)
                                         : Sampled(source, geometry, place);
}

/// From the source to brightness. The blur that comes between is linear: brightness may come first.
template <typename Source>
__global__ void __launch_bounds__(kThreads) VolumeGatherKernel(VolumeLaunch launch) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  const DeviceGeometry& geometry = volume.geometry;
  const std::int64_t width = launch.patch.x;
  ForEachRun(
      launch, geometry,
      [&](std::int64_t row, const RowOfPoints* points, std::int64_t first, std::uint32_t block) {
        DeviceLanes value[kRun] = {};
#pragma unroll 1
        for (int k = 0; k < kRun; ++k) {
          const std::int64_t x = first + k * kNoiseLanes;
          if (x >= width) break;
          value[k] = Toned(volume.tone, Gathered<Source>(launch, geometry, points, row, x));
        }
        if (volume.noise.std > 0) AddNoise(volume.noise, block, value);
#pragma unroll 1
        for (int k = 0; k < kRun; ++k) {
          const std::int64_t x = first + k * kNoiseLanes;
          if (x >= width) break;
          DeviceLanes made = value[k];
          if (volume.brightness != 1) made = Lined(FreeLine(volume.brightness, 0), made);
          if (volume.d_planes[0] == nullptr) {
            StoreVoxel(launch, volume.d_out, row * width + x, made.v);
          } else {
            volume.d_planes[0][row * width + x] = made.v;
          }
        }
      });
}

__global__ void __launch_bounds__(kThreads) VolumeLabelsKernel(VolumeLaunch launch) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  const DeviceGeometry& geometry = volume.geometry;
  const auto* labels = reinterpret_cast<const std::uint8_t*>(geometry.d_source);
  auto* d_out = reinterpret_cast<std::uint8_t*>(volume.d_out);
  ForEachRun(launch, geometry,
             [&](std::int64_t row, const RowOfPoints* points, std::int64_t first, std::uint32_t) {
               const std::int64_t z = row / launch.patch.y, y = row % launch.patch.y;
               for (std::int64_t x = first; x < launch.patch.x && x < first + kNoiseGroup;
                    x += kNoiseLanes) {
                 const std::int64_t at =
                     geometry.whole_voxels
                         ? MirroredVoxel(geometry, launch.patch, z, y, x)
                         : NearestVoxel(geometry, PlaceOf(geometry, points, z, y, x));
                 d_out[row * launch.patch.x + x] = __ldg(labels + at);
               }
             });
}

/// Values along axis 0, 1 or 2 (z, y, x) of (z, y, x) of `size`; an axis of radius 0 or of one
/// sample is copied.
template <typename T>
__device__ void BlurAlong(int axis, const DeviceBlur& blur, const DeviceExtent& size, const T* from,
                          float* to) {
  const std::int64_t stride = axis == 0 ? size.y * size.x : axis == 1 ? size.x : 1;
  const std::int64_t count = axis == 0 ? size.z : axis == 1 ? size.y : size.x;
  const std::int64_t voxels = size.Voxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; at < voxels;
       at += step) {
    const std::int64_t place = at / stride % count;
    to[at] = blur.radius == 0 || count == 1
                 ? static_cast<float>(from[at])
                 : Weighed(blur, from + (at - place * stride), stride, place, count);
  }
}

template <typename Source>
__global__ void __launch_bounds__(kThreads) VolumeSmoothKernel(VolumeLaunch launch, int axis) {
  const DeviceGeometry& geometry = launch.d_volumes[blockIdx.y].geometry;
  float* const* d_smooth = geometry.d_smooth;
  if (d_smooth[0] == nullptr) return;
  if (axis == 2) {
    const auto* source = reinterpret_cast<const Source*>(geometry.d_source);
    BlurAlong(2, geometry.smooth[2], geometry.source, source, d_smooth[0]);
  } else {
    BlurAlong(axis, geometry.smooth[axis], geometry.source, d_smooth[1 - axis], d_smooth[axis]);
  }
}

__global__ void __launch_bounds__(kThreads) VolumeBlurKernel(VolumeLaunch launch, int axis) {
  const DeviceVolume& volume = launch.d_volumes[blockIdx.y];
  if (volume.blur.radius == 0) return;
  const int from = axis == 1 ? 1 : 0;
  BlurAlong(axis, volume.blur, launch.patch, volume.d_planes[from], volume.d_planes[1 - from]);
}

memory::KernelShape ShapeOf(const VolumeLaunch& launch, std::int64_t threads) {
  const std::int64_t blocks = (threads + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerPatch ? static_cast<unsigned>(blocks) : kMaxBlocksPerPatch,
                  static_cast<unsigned>(launch.count));
  return {grid, kThreads, 0};
}

std::int64_t RunsOf(const VolumeLaunch& launch) {
  return launch.patch.Rows() * ((launch.patch.x + kNoiseGroup - 1) / kNoiseGroup) * kNoiseLanes;
}

template <typename Source>
cudaError_t LaunchGather(const VolumeLaunch& launch, cudaStream_t stream) {
  // x, y, z: the first of d_smooth has them all in the end.
  for (int axis = 2; launch.smooths && axis >= 0; --axis) {
    const cudaError_t error = memory::LaunchKernel(ShapeOf(launch, launch.voxels), stream,
                                                   VolumeSmoothKernel<Source>, launch, axis);
    if (error != cudaSuccess) return error;
  }
  return memory::LaunchKernel(ShapeOf(launch, RunsOf(launch)), stream, VolumeGatherKernel<Source>,
                              launch);
}

cudaError_t LaunchGatherOfType(const VolumeLaunch& launch, cudaStream_t stream) {
  switch (launch.source) {
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

int LaunchVolumeVoxels(const VolumeLaunch& launch, CUstream_st* stream) {
  cudaError_t error = LaunchGatherOfType(launch, stream);
  for (int axis = 2; launch.blurs && axis >= 0 && error == cudaSuccess; --axis) {
    error = memory::LaunchKernel(ShapeOf(launch, launch.patch.Voxels()), stream, VolumeBlurKernel,
                                 launch, axis);
  }
  return static_cast<int>(error);
}

int LaunchVolumeLabels(const VolumeLaunch& launch, CUstream_st* stream) {
  return static_cast<int>(
      memory::LaunchKernel(ShapeOf(launch, RunsOf(launch)), stream, VolumeLabelsKernel, launch));
}

}  // namespace patchbay::ops
