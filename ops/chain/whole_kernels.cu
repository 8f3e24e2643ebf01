// Reductions and neighbourhoods over patches in scratch. The last kernel of each also runs the
// point-wise steps that follow; lines computed from sums are applied by the next kernel that reads.
#include <cuda_runtime.h>

#include "ops/chain/patch_runs.cuh"

namespace patchbay::ops {
namespace {

/// A patch in one slot.
struct PassOf {
  const PatchShape& shape;
  const DeviceProgram& program;
  const DevicePass& pass;

  __device__ PassOf(const PatchLaunch& launch, int patch, int slot)
      : shape(launch.shape), program(launch.d_patches[patch]), pass(program.d_passes[1 + slot]) {}

  __device__ float* Plane(int plane, int c) const {
    return program.d_planes[plane] + c * shape.patch.Voxels();
  }
  __device__ LineWithin& LineOf(int slot, int c) const {
    return program.d_lines[slot * shape.channels + c];
  }
  /// The curves of a reduction's channels, in their type.
  template <typename Step>
  __device__ auto* CurvesOf(const Step& /*step*/) const {
    static_assert(sizeof(typename Step::Curve) <= kCurveBytes);
    return reinterpret_cast<typename Step::Curve*>(program.d_curves);
  }
  /// A value in the form that the pass reads.
  __device__ DeviceLanes Value(int c, std::int64_t at) const {
    const DeviceLanes value{Plane(pass.from, c)[at]};
    return pass.before >= 0 ? Applied(LineOf(pass.before, c), value) : value;
  }
  /// The value as the input of a curve.
  __device__ DeviceLanes Inverted(int c, std::int64_t at) const {
    const DeviceLanes value = Value(c, at);
    return pass.inverts ? Applied(FreeLine(-1, 0), value) : value;
  }
  /// Every value by value_at(c, place, column) into the steps that follow.
  template <int kTogether, typename ValueAt>
  __device__ void EmitEach(const ValueAt& value_at) const {
    EmitAll<kTogether, false>(
        shape, program, pass,
        [&](const RunOfPixels& run, std::int64_t x, int channel, DeviceLanes(&value)[kTogether]) {
          for (int c = 0; c < kTogether; ++c) {
            value[c] = value_at(channel + c, run.row * shape.patch.x + x);
          }
        });
  }
};

/// Calls `call` with the reduction of the pass in its type, if it has the form.
template <WholeForm kForm, typename Call>
__device__ void VisitReduction(const DevicePass& pass, const Call& call) {
  VisitOnDevice(Reductions(), pass.reduction, [&](const auto& step) {
    if constexpr (std::decay_t<decltype(step)>::kForm == kForm) call(step);
  });
}

/// A step about the mean grey of the whole slice.
__global__ void __launch_bounds__(kThreads) GreyKernel(PatchLaunch launch, int slot) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (of.pass.form != WholeForm::kGrey) return;
  const DeviceExtent& patch = of.shape.patch;
  const auto pixels = static_cast<double>(patch.y * patch.x);
  VisitReduction<WholeForm::kGrey>(of.pass, [&](const auto& step) {
    EmitAll<3, false>(of.shape, of.program, of.pass,
                      [&](const RunOfPixels& run, std::int64_t x, int, DeviceLanes(&rgb)[3]) {
                        const auto sum = static_cast<double>(of.program.d_grey[run.row / patch.y]);
                        for (int c = 0; c < 3; ++c) rgb[c] = of.Value(c, run.row * patch.x + x);
                        Apply(step.AboutGrey(static_cast<float>(sum / (65'536 * pixels))), rgb);
                      });
  });
}

/// Along one axis, from one plane to the other; along the last of its axes, onwards.
template <int kTogether>
__global__ void __launch_bounds__(kThreads) BlurKernel(PatchLaunch launch, int slot, int axis) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (of.pass.form != WholeForm::kBlur) return;
  int done = 0;
  for (int earlier = 2; earlier > axis; --earlier) done += of.pass.along[earlier] ? 1 : 0;
  bool is_last = true;
  for (int later = axis - 1; later >= 0; --later) is_last = is_last && !of.pass.along[later];
  const DeviceExtent& size = of.shape.patch;
  const std::int64_t stride = axis == 0 ? size.y * size.x : axis == 1 ? size.x : 1;
  const std::int64_t count = axis == 0 ? size.z : axis == 1 ? size.y : size.x;
  const int from = (of.pass.from + done) % 2;
  const auto blurred = [&](int c, std::int64_t at) {
    const std::int64_t place = at / stride % count;
    const float* const d_line = of.Plane(from, c) + (at - place * stride);
    return DeviceLanes{Weighed(of.pass.blur, d_line, stride, place, count)};
  };
  if (is_last) return of.EmitEach<kTogether>(blurred);
  ForEachRun<false>(of.shape, of.program.geometry, [&](const RunOfPixels& run) {
    for (int c = 0; c < of.shape.channels; ++c) {
#pragma unroll 1
      for (int k = 0; k < kRun && run.Column(k) < size.x; ++k) {
        const std::int64_t at = run.row * size.x + run.Column(k);
        of.Plane(1 - from, c)[at] = blurred(c, at).v;
      }
    }
  });
}

/// A value to be summed: before a line or a curve, or after the curve.
__device__ DeviceLanes ValueToSum(const PassOf& of, bool after_curve, int c, std::int64_t at) {
  return after_curve ? DeviceLanes{of.Plane(of.pass.to, c)[at]} : of.Inverted(c, at);
}

__device__ bool Sums(const DevicePass& pass, bool after_curve) {
  return after_curve ? pass.form == WholeForm::kCurve && pass.retains
                     : pass.form == WholeForm::kCurve || pass.form == WholeForm::kLine;
}

/// The sums of each row of each channel: sixteen threads a row.
__global__ void __launch_bounds__(kThreads)
    SumsKernel(PatchLaunch launch, int slot, bool after_curve) {
  __shared__ float sm_lane[4][kThreads];
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (!Sums(of.pass, after_curve)) return;
  const int lane = static_cast<int>(threadIdx.x) % kSumLanes;
  const std::int64_t rows = of.shape.patch.Rows(), width = of.shape.patch.x;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRowsAtOnce;
       first < rows * of.shape.channels; first += std::int64_t{gridDim.x} * kRowsAtOnce) {
    const std::int64_t line = first + threadIdx.x / kSumLanes;
    const bool is_there = line < rows * of.shape.channels;
    if (is_there) {
      const int c = static_cast<int>(line / rows);
      const std::int64_t begin = line % rows * width;
      const DeviceLanes shift = ValueToSum(of, after_curve, c, 0);
      DeviceLanes sum{}, squares{}, least = ValueToSum(of, after_curve, c, begin), most = least;
      for (std::int64_t x = lane; x < width; x += kSumLanes) {
        const DeviceLanes value = ValueToSum(of, after_curve, c, begin + x), d = value - shift;
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
    if (is_there && lane == 0) {
      const unsigned at = threadIdx.x;
      of.program.d_row_sums[line] =
          JoinedLanes(&sm_lane[0][at], &sm_lane[1][at], &sm_lane[2][at], &sm_lane[3][at]);
    }
    __syncthreads();
  }
}

/// Computes from the sums of channel `c` the line or the curve of a reduction.
__device__ void Conclude(const PassOf& of, int slot, bool after_curve, int c,
                         const PatchSums& sums) {
  const float shift = ValueToSum(of, after_curve, c, 0).v;
  const auto stats =
      StatsOf<RoundedProduct>(sums, shift, static_cast<double>(of.shape.patch.Voxels()));
  LineWithin& line = of.LineOf(slot, c);
  VisitReduction<WholeForm::kLine>(of.pass,
                                   [&](const auto& step) { line = step.LineOf(stats, c); });
  VisitReduction<WholeForm::kCurve>(of.pass, [&](const auto& step) {
    if (after_curve) {
      line = step.template LineAfter<RoundedProduct>(of.program.d_before[c], stats);
      return;
    }
    of.program.d_before[c] = stats;
    of.CurvesOf(step)[c] = step.CurveOf(stats, c);
    if (of.pass.inverts) line = FreeLine(-1, 0);
  });
}

/// One block per patch and channel: one thread per slice, then the slices in order.
__global__ void __launch_bounds__(kThreads)
    TotalKernel(PatchLaunch launch, int slot, bool after_curve) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (!Sums(of.pass, after_curve)) return;
  const int c = static_cast<int>(blockIdx.x);
  const DeviceExtent& size = of.shape.patch;
  PatchSums* const d_sums = of.program.d_row_sums + c * size.Rows();
  for (std::int64_t z = threadIdx.x; z < size.z; z += kThreads) {
    PatchSums slice = d_sums[z * size.y];
    for (std::int64_t y = 1; y < size.y; ++y) Join(slice, d_sums[z * size.y + y]);
    d_sums[z * size.y] = slice;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  PatchSums patch = d_sums[0];
  for (std::int64_t z = 1; z < size.z; ++z) Join(patch, d_sums[z * size.y]);
  Conclude(of, slot, after_curve, c, patch);
}

/// Down to the nearest voxel and up again between voxels, along y, then x, then z.
template <int kTogether>
__global__ void __launch_bounds__(kThreads) CoarseKernel(PatchLaunch launch, int slot) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (of.pass.form != WholeForm::kCoarse) return;
  const DeviceExtent& size = of.shape.patch;
  const auto blend = [](const CoarseTap& tap, DeviceLanes a, DeviceLanes b) {
    return a * DeviceLanes{tap.first_part} + b * DeviceLanes{tap.second_part};
  };
  of.EmitEach<kTogether>([&](int c, std::int64_t at) {
    const std::int64_t row = at / size.x;
    const CoarseTap z = of.pass.d_taps[row / size.y];
    const CoarseTap y = of.pass.d_taps[size.z + row % size.y];
    const CoarseTap x = of.pass.d_taps[size.z + size.y + at % size.x];
    const auto value = [&](std::int64_t from_z, std::int64_t from_y, std::int64_t from_x) {
      return of.Value(c, (from_z * size.y + from_y) * size.x + from_x);
    };
    const auto along_y = [&](int from_z, int from_x) {
      return blend(y, value(from_z, y.first, from_x), value(from_z, y.second, from_x));
    };
    const auto along_x = [&](int from_z) {
      return blend(x, along_y(from_z, x.first), along_y(from_z, x.second));
    };
    return blend(z, along_x(z.first), along_x(z.second));
  });
}

/// Onwards, or where lines come of it into its plane.
template <int kTogether>
__global__ void __launch_bounds__(kThreads) CurveKernel(PatchLaunch launch, int slot) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (of.pass.form != WholeForm::kCurve) return;
  VisitReduction<WholeForm::kCurve>(of.pass, [&](const auto& step) {
    const auto curved = [&](int c, std::int64_t at) {
      return Applied(of.CurvesOf(step)[c], of.Inverted(c, at));
    };
    if (!of.pass.has_lines) return of.EmitEach<kTogether>(curved);
    const std::int64_t voxels = of.shape.patch.Voxels();
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
    for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
         at < voxels * of.shape.channels; at += stride) {
      const auto c = static_cast<int>(at / voxels);
      of.Plane(of.pass.to, c)[at % voxels] = curved(c, at % voxels).v;
    }
  });
}

/// The lines of a pass that no other applies.
template <int kTogether>
__global__ void __launch_bounds__(kThreads) FinishKernel(PatchLaunch launch, int slot) {
  const PassOf of(launch, static_cast<int>(blockIdx.y), slot);
  if (!of.pass.finishes) return;
  // A line alone has not read its values to write them.
  of.EmitEach<kTogether>([&](int c, std::int64_t at) {
    return Applied(of.LineOf(slot, c), DeviceLanes{of.Plane(of.pass.to, c)[at]});
  });
}

/// The kernels of one slot, queued as long as none fails.
class Queue {
 public:
  Queue(const PatchLaunch& launch, const WholeRun& run, cudaStream_t stream)
      : launch_(launch), run_(run), stream_(stream) {}

  template <typename Kernel, typename... More>
  void Add(const memory::KernelShape& shape, Kernel kernel, More... more) {
    if (error_ != cudaSuccess) return;
    error_ = memory::LaunchKernel(shape, stream_, kernel, launch_, run_.slot, more...);
  }
  void AddSums(bool after_curve) {
    const DeviceExtent& patch = launch_.shape.patch;
    Add(ShapeOf(launch_, patch.Rows() * launch_.shape.channels * kSumLanes), SumsKernel,
        after_curve);
    const dim3 grid(static_cast<unsigned>(launch_.shape.channels),
                    static_cast<unsigned>(launch_.count));
    Add({grid, kThreads, 0}, TotalKernel, after_curve);
  }
  template <int kTogether>
  void AddRun() {
    const memory::KernelShape runs = RunsOf(launch_);
    switch (run_.form) {
      case WholeForm::kNone:
        return;
      case WholeForm::kGrey:
        return Add(runs, GreyKernel);
      case WholeForm::kBlur:
        for (int axis = 2; axis >= 0; --axis) {
          if (run_.along[axis]) Add(runs, BlurKernel<kTogether>, axis);
        }
        return;
      case WholeForm::kCoarse:
        return Add(runs, CoarseKernel<kTogether>);
      case WholeForm::kLine:
        AddSums(false);
        break;
      case WholeForm::kCurve:
        AddSums(false);
        Add(runs, CurveKernel<kTogether>);
        if (run_.retains) AddSums(true);
    }
    if (run_.finishes) Add(runs, FinishKernel<kTogether>);
  }
  cudaError_t error() const { return error_; }

 private:
  const PatchLaunch& launch_;
  const WholeRun& run_;
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

int LaunchWhole(const PatchLaunch& launch, const WholeRun& run, CUstream_st* stream) {
  Queue queue(launch, run, stream);
  if (launch.shape.channels == 3) {
    queue.AddRun<3>();
  } else {
    queue.AddRun<1>();
  }
  return static_cast<int>(queue.error());
}

}  // namespace patchbay::ops
