// The distribution of a patch's rows over the threads of a block, and a thread's work on the values
// of its run: the point-wise steps that follow, then the store into the slot or a plane. Include
// from .cu files only. A part of chain.
#pragma once

#include "ops/chain/patch_gather.cuh"
#include "ops/chain/step_lists.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {

inline constexpr int kThreads = 256;
inline constexpr unsigned kMaxBlocksPerPatch = 128;
/// Rows that the runs of a block may reach into at once.
inline constexpr int kRowsAtOnce = kThreads / kRunStep;

/// Groups of runs of a row.
__device__ inline std::int64_t GroupsOf(const PatchShape& shape) {
  return (shape.patch.x + kRunGroup - 1) / kRunGroup;
}

/// The values of one thread: columns `first` + k * kRunStep of a row, as far as it reaches.
struct RunOfPixels {
  std::int64_t row = 0, group = 0, first = 0;  ///< rows are (z, y)
  int lane = 0;
  const RowOfPoints* points = nullptr;

  __device__ std::int64_t Column(int k) const { return first + k * kRunStep; }
};

/// The points of a volume's field along the rows of runs [first, end).
__device__ inline void FillPoints(const PatchShape& shape, const DeviceGeometry& geometry,
                                  std::int64_t first_row, std::int64_t last_row,
                                  RowOfPoints* sm_points) {
  const int points = geometry.points;
  const int count = static_cast<int>(last_row - first_row + 1) * 3 * points;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const std::int64_t row = first_row + i / (3 * points);
    const int axis = i / points % 3, point = i % points;
    sm_points[row - first_row][axis][point] =
        PointOfRow(geometry, axis, point, row / shape.patch.y, row % shape.patch.y);
  }
}

/// Calls make(run) for the block's share of a patch. With kPoints, all threads of the block must
/// call it, since they load the points of `geometry`.
template <bool kPoints, typename Make>
__device__ void ForEachRun(const PatchShape& shape, const DeviceGeometry& geometry,
                           const Make& make) {
  __shared__ RowOfPoints sm_points[kPoints ? kRowsAtOnce : 1];
  const std::int64_t per_row = GroupsOf(shape) * kRunStep, runs = shape.patch.Rows() * per_row;
  const bool has_points = kPoints && geometry.points != 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kThreads; first < runs; first += step) {
    const std::int64_t end = first + kThreads < runs ? first + kThreads : runs;
    const std::int64_t first_row = first / per_row;
    if (has_points) {
      FillPoints(shape, geometry, first_row, (end - 1) / per_row, sm_points);
      __syncthreads();
    }
    const std::int64_t at = first + threadIdx.x;
    if (at < runs) {
      RunOfPixels run;
      run.row = at / per_row;
      run.group = at % per_row / kRunStep;
      run.lane = static_cast<int>(at % kRunStep);
      run.first = run.group * kRunGroup + run.lane;
      run.points = &sm_points[kPoints ? run.row - first_row : 0];
      make(run);
    }
    if (has_points) __syncthreads();
  }
}

template <int kTogether>
using Pixels = DeviceLanes[kRun][kTogether];

/// The step of a list, in its type.
template <typename... Steps, typename Any, typename Call>
__device__ void VisitOnDevice(StepList<Steps...> /*list*/, const Any& step, const Call& call) {
  std::int32_t at = 0;
  ((at++ == step.number ? call(*reinterpret_cast<const Steps*>(step.bytes)) : void()), ...);
}

/// The step in double of one value.
__device__ inline DeviceLanes AppliedExactly(const ExactStep& step, int channel, DeviceLanes x) {
  double value = x.v;
  const StepValues<AnyPointStep> steps = StepsOf(step, channel);
  for (int k = 0; k < steps.count; ++k) {
    VisitOnDevice(PointSteps(), steps.at[k], [&value](const auto& one) {
      if constexpr (IsByValue<std::decay_t<decltype(one)>>::value) value = Exactly(one, value);
    });
  }
  return {static_cast<float>(value)};
}

/// A step over the run's values of channels [channel, channel + kTogether).
template <int kTogether, typename Step>
__device__ void ApplyPoint(const PatchShape& shape, const Step& step, const RunOfPixels& run,
                           int channel, Pixels<kTogether>& value) {
  constexpr StepForm kForm = FormOf<Step>::kForm;
  if constexpr (kForm == StepForm::kPlaced) {
    for (int c = 0; c < kTogether; ++c) {
      const std::int64_t row = run.row * shape.channels + channel + c;
      const std::int64_t number = (row * GroupsOf(shape) + run.group) * kRunStep + run.lane;
      ApplyToRun(step, number, &value[0][c], kTogether);
    }
  } else if constexpr (kForm == StepForm::kRgb || kForm == StepForm::kPixels) {
    if constexpr (kTogether == 3) {
#pragma unroll 1  // the pixels lie in local memory: unrolled, the code is eight times as long
      for (int k = 0; k < kRun; ++k) {
        if (run.Column(k) < shape.patch.x) Apply(step, value[k]);
      }
    }
  } else if constexpr (kForm != StepForm::kInDouble) {
    for (int c = 0; c < kTogether; ++c) {
#pragma unroll 1
      for (int k = 0; k < kRun && run.Column(k) < shape.patch.x; ++k) {
        if constexpr (std::is_same_v<Step, ExactStep>) {
          value[k][c] = AppliedExactly(step, channel + c, value[k][c]);
        } else {
          value[k][c] = Applied(OfChannel(step, channel + c), value[k][c]);
        }
      }
    }
  }
}

__device__ inline std::uint32_t GreySteps(const DeviceLanes (&rgb)[3], float white) {
  const DeviceLanes to_one{1.0f / white};
  DeviceLanes unit[3];
  for (int c = 0; c < 3; ++c) unit[c] = Within01(rgb[c] * to_one);
  return DeviceLanes::Whole::Nearest(GreyOf01(unit) * DeviceLanes{65536.0f}).v;
}

/// The grey that a block's threads add up.
class GreyTally {
 public:
  __device__ GreyTally(const PatchShape& shape, const DeviceProgram& program,
                       const DevicePass& pass, unsigned long long* sm_sum)
      : shape_(shape), program_(program), pass_(pass), sm_sum_(sm_sum) {
    if (!pass.sums_grey) return;
    if (threadIdx.x == 0) *sm_sum = 0;
    __syncthreads();
  }
  template <int kTogether>
  __device__ void Add(const RunOfPixels& run, const Pixels<kTogether>& value) {
    if constexpr (kTogether == 3) {
      if (!pass_.sums_grey) return;
      unsigned long long grey = 0;
      for (int k = 0; k < kRun; ++k) {
        if (run.Column(k) < shape_.patch.x) grey += GreySteps(value[k], pass_.white);
      }
      const std::int64_t z = run.row / shape_.patch.y;
      if (shape_.patch.z != 1) {
        atomicAdd(&program_.d_grey[z], grey);
      } else {
        sum_ += grey;
      }
    }
  }
  /// All threads of the block call it.
  __device__ void Finish() {
    if (!pass_.sums_grey || shape_.patch.z != 1) return;
    atomicAdd(sm_sum_, sum_);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(program_.d_grey, *sm_sum_);
  }

 private:
  const PatchShape& shape_;
  const DeviceProgram& program_;
  const DevicePass& pass_;
  unsigned long long* sm_sum_;
  unsigned long long sum_ = 0;
};

/// The steps after a pass over a run's values, then into the slot or the next plane.
template <int kTogether>
__device__ void Emit(const PatchShape& shape, const DeviceProgram& program, const DevicePass& pass,
                     const RunOfPixels& run, int channel, Pixels<kTogether>& value,
                     GreyTally& grey) {
  for (int s = pass.begin; s < pass.end; ++s) {
    VisitOnDevice(PointSteps(), program.d_steps[s], [&](const auto& step) {
      ApplyPoint<kTogether>(shape, step, run, channel, value);
    });
  }
  grey.Add<kTogether>(run, value);
#pragma unroll 1
  for (int k = 0; k < kRun; ++k) {
    const std::int64_t x = run.Column(k);
    if (x >= shape.patch.x) break;
    const std::int64_t at = run.row * shape.patch.x + x;
    for (int c = 0; c < kTogether; ++c) {
      if (pass.to_slot) {
        StoreElement(shape, program.d_out, at, channel + c, value[k][c].v);
      } else {
        program.d_planes[pass.to][(channel + c) * shape.patch.Voxels() + at] = value[k][c].v;
      }
    }
  }
}

/// Calls value_at(c, row, x) for every value of a patch, and emits the result.
template <int kTogether, bool kPoints, typename ValueAt>
__device__ void EmitAll(const PatchShape& shape, const DeviceProgram& program,
                        const DevicePass& pass, const ValueAt& value_at) {
  __shared__ unsigned long long sm_grey;
  GreyTally grey(shape, program, pass, &sm_grey);
  ForEachRun<kPoints>(shape, program.geometry, [&](const RunOfPixels& run) {
    for (int channel = 0; channel < shape.channels; channel += kTogether) {
      Pixels<kTogether> value = {};
#pragma unroll 1
      for (int k = 0; k < kRun; ++k) {
        if (run.Column(k) >= shape.patch.x) break;
        value_at(run, run.Column(k), channel, value[k]);
      }
      Emit<kTogether>(shape, program, pass, run, channel, value, grey);
    }
  });
  grey.Finish();
}

inline memory::KernelShape ShapeOf(const PatchLaunch& launch, std::int64_t threads) {
  const std::int64_t blocks = (threads + kThreads - 1) / kThreads;
  const dim3 grid(blocks < kMaxBlocksPerPatch ? static_cast<unsigned>(blocks) : kMaxBlocksPerPatch,
                  static_cast<unsigned>(launch.count));
  return {grid, kThreads, 0};
}
inline memory::KernelShape RunsOf(const PatchLaunch& launch) {
  const DeviceExtent& patch = launch.shape.patch;
  return ShapeOf(launch, patch.Rows() * ((patch.x + kRunGroup - 1) / kRunGroup) * kRunStep);
}

}  // namespace patchbay::ops
