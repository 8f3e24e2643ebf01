// The gather and everything that needs one pixel in one kernel, straight to the slot where no step
// needs more; before it the smoothing of volumes that are read finer. Labels.
#include <cuda_runtime.h>

#include "ops/chain/patch_runs.cuh"

namespace patchbay::ops {
namespace {

template <typename Source, int kTogether, bool kInDepth>
__global__ void __launch_bounds__(kThreads) GatherKernel(PatchLaunch launch) {
  const PatchShape& shape = launch.shape;
  const DeviceProgram& program = launch.d_patches[blockIdx.y];
  const DeviceGeometry& geometry = program.geometry;
  EmitAll<kTogether, kInDepth>(
      shape, program, program.d_passes[0],
      [&](const RunOfPixels& run, std::int64_t x, int channel, DeviceLanes(&value)[kTogether]) {
        const std::int64_t z = run.row / shape.patch.y, y = run.row % shape.patch.y;
        if constexpr (kInDepth) {
          value[0] = GatherVoxel<Source>(shape, geometry, run.points, {z, y, x}, channel);
        } else {
          GatherPixel<Source>(geometry, shape.channels, z, y, x, channel, value);
        }
      });
}

template <bool kInDepth>
__global__ void __launch_bounds__(kThreads) LabelsKernel(PatchLaunch launch) {
  const PatchShape& shape = launch.shape;
  const DeviceProgram& program = launch.d_patches[blockIdx.y];
  const DeviceGeometry& geometry = program.geometry;
  const auto* labels = reinterpret_cast<const std::uint8_t*>(geometry.d_source);
  auto* d_out = reinterpret_cast<std::uint8_t*>(program.d_out);
  ForEachRun<kInDepth>(shape, geometry, [&](const RunOfPixels& run) {
    const std::int64_t z = run.row / shape.patch.y, y = run.row % shape.patch.y;
    for (int k = 0; k < kRun && run.Column(k) < shape.patch.x; ++k) {
      const std::int64_t x = run.Column(k);
      const std::int64_t at = kInDepth ? LabelVoxel(shape, geometry, run.points, {z, y, x})
                                       : LabelPixel(geometry, z, y, x);
      d_out[run.row * shape.patch.x + x] = __ldg(labels + at);
    }
  });
}

/// The source along axis 0, 1 or 2 (z, y, x); an axis of radius 0 is copied.
template <typename T>
__device__ void SmoothAlong(int axis, const DeviceGeometry& geometry, int channels, const T* from,
                            float* to) {
  const DeviceExtent& size = geometry.source;
  const DeviceBlur& blur = geometry.smooth[axis];
  const std::int64_t stride = channels * (axis == 0 ? size.y * size.x : axis == 1 ? size.x : 1);
  const std::int64_t count = axis == 0 ? size.z : axis == 1 ? size.y : size.x;
  const std::int64_t voxels = size.Voxels() * channels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; at < voxels;
       at += step) {
    const std::int64_t place = at / stride % count;
    to[at] = blur.radius == 0 ? static_cast<float>(from[at])
                              : Weighed(blur, from + (at - place * stride), stride, place, count);
  }
}

template <typename Source>
__global__ void __launch_bounds__(kThreads) SmoothKernel(PatchLaunch launch, int axis) {
  const DeviceGeometry& geometry = launch.d_patches[blockIdx.y].geometry;
  float* const* d_smooth = geometry.d_smooth;
  if (d_smooth[0] == nullptr) return;
  if (axis == 2) {
    const auto* source = reinterpret_cast<const Source*>(geometry.d_source);
    SmoothAlong(2, geometry, launch.shape.channels, source, d_smooth[0]);
  } else {
    SmoothAlong(axis, geometry, launch.shape.channels, d_smooth[1 - axis], d_smooth[axis]);
  }
}

template <typename Source>
cudaError_t LaunchOfType(const PatchLaunch& launch, cudaStream_t stream) {
  // x, y, z: the first of d_smooth has them all in the end.
  for (int axis = 2; launch.smooths && axis >= 0; --axis) {
    const cudaError_t error = memory::LaunchKernel(ShapeOf(launch, launch.smooth_voxels), stream,
                                                   SmoothKernel<Source>, launch, axis);
    if (error != cudaSuccess) return error;
  }
  const memory::KernelShape runs = RunsOf(launch);
  if (launch.shape.in_depth) {
    return memory::LaunchKernel(runs, stream, GatherKernel<Source, 1, true>, launch);
  }
  if (launch.shape.channels == 3) {
    return memory::LaunchKernel(runs, stream, GatherKernel<Source, 3, false>, launch);
  }
  return memory::LaunchKernel(runs, stream, GatherKernel<Source, 1, false>, launch);
}

}  // namespace

int LaunchGather(const PatchLaunch& launch, CUstream_st* stream) {
  switch (launch.shape.source) {
    case SourceType::kUint8:
      return static_cast<int>(LaunchOfType<std::uint8_t>(launch, stream));
    case SourceType::kUint16:
      return static_cast<int>(LaunchOfType<std::uint16_t>(launch, stream));
    case SourceType::kInt16:
      return static_cast<int>(LaunchOfType<std::int16_t>(launch, stream));
    default:
      return static_cast<int>(LaunchOfType<float>(launch, stream));
  }
}

int LaunchLabels(const PatchLaunch& launch, CUstream_st* stream) {
  const memory::KernelShape runs = RunsOf(launch);
  return static_cast<int>(launch.shape.in_depth
                              ? memory::LaunchKernel(runs, stream, LabelsKernel<true>, launch)
                              : memory::LaunchKernel(runs, stream, LabelsKernel<false>, launch));
}

}  // namespace patchbay::ops
