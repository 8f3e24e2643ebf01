#include <cuda_runtime.h>

#include "ops/spectral/spectral_columns_pass.h"
#include "ops/spectral/spectral_launch.h"
#include "ops/spectral/spectral_rows_pass.h"
#include "runtime/memory/kernel_launch.cuh"

namespace patchbay::ops {
namespace {

using namespace spectral_passes;

/// A block of threads between its barriers.
template <typename State>
struct ThreadBlock {
  State state;

  template <typename F>
  __device__ __forceinline__ void Phase(const F& run) {
    run(static_cast<int>(threadIdx.x), state);
    __syncthreads();
  }
  __device__ __forceinline__ void Add(std::uint32_t* counter, std::uint32_t value) {
    atomicAdd(counter, value);
  }
  __device__ __forceinline__ void Add(std::uint64_t* counter, std::uint64_t value) {
    atomicAdd(reinterpret_cast<unsigned long long*>(counter),
              static_cast<unsigned long long>(value));
  }
};

template <bool gauss7>
__global__ void __launch_bounds__(kPassThreads) RowsKernel(const RowsPass pass, int strips) {
  auto& sm = *memory::DynamicShared<RowsShared<gauss7>>();
  ThreadBlock<RowsState> block;
  PrepareRows<gauss7>(block, pass, sm);
  for (int i = static_cast<int>(blockIdx.x); i < strips; i += static_cast<int>(gridDim.x)) {
    MakeStrip<gauss7>(block, pass, pass.d_strips[i], sm);
  }
}

/// The first `edge_blocks` blocks make the edge tile, the others the eight tiles in turn.
template <bool coefficients>
__global__ void __launch_bounds__(kPassThreads, coefficients ? 2 : 3)
    ColumnsKernel(const ColumnsPass pass, int edge_blocks) {
  auto& sm = *memory::DynamicShared<ColumnsShared>();
  ThreadBlock<ColumnsState<coefficients>> block;
  const int index = static_cast<int>(blockIdx.x) - edge_blocks;
  const int per_tile = (static_cast<int>(gridDim.x) - edge_blocks) / kEdgeTile;
  const bool edge = index < 0;
  CountColumns<coefficients>(block, pass, edge ? kEdgeTile : index % kEdgeTile,
                             edge ? index + edge_blocks : index / kEdgeTile,
                             edge ? edge_blocks : per_tile, sm);
}

/// Lets `kernel` use `shared_bytes` a block; `blocks` receives how many run on this GPU at once.
template <typename Kernel>
cudaError_t Fit(Kernel* kernel, std::size_t shared_bytes, int* blocks) {
  int device = 0, processors = 0, per_processor = 0;
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes));
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kPassThreads,
                                                          shared_bytes);
  }
  *blocks = processors * per_processor;
  return error == cudaSuccess && *blocks == 0 ? cudaErrorInvalidConfiguration : error;
}

template <bool gauss7>
int LaunchRows(const RowsPass& pass, int strips, cudaStream_t stream) {
  int resident = 0;
  const cudaError_t error = Fit(&RowsKernel<gauss7>, sizeof(RowsShared<gauss7>), &resident);
  if (error != cudaSuccess) return static_cast<int>(error);
  const int blocks = strips < resident ? strips : resident;
  return static_cast<int>(memory::LaunchKernel(
      {static_cast<unsigned>(blocks), kPassThreads, sizeof(RowsShared<gauss7>)}, stream,
      RowsKernel<gauss7>, pass, strips));
}

template <bool coefficients>
int LaunchColumns(const ColumnsPass& pass, cudaStream_t stream) {
  int resident = 0;
  const cudaError_t error = Fit(&ColumnsKernel<coefficients>, sizeof(ColumnsShared), &resident);
  if (error != cudaSuccess) return static_cast<int>(error);
  // A block of the edge tile makes 16 frames at a time, one of another tile an eighth of a frame.
  const int edge_items = (pass.frames + kPoints - 1) / kPoints;
  const int edge_share = 1 + resident / (kEdgeTile * kPoints + 1);
  const int edge_blocks = edge_items < edge_share ? edge_items : edge_share;
  const int rest = (resident - edge_blocks) / kEdgeTile;
  const int per_tile = rest < 1 ? 1 : rest < pass.frames ? rest : pass.frames;
  const int blocks = edge_blocks + kEdgeTile * per_tile;
  return static_cast<int>(
      memory::LaunchKernel({static_cast<unsigned>(blocks), kPassThreads, sizeof(ColumnsShared)},
                           stream, ColumnsKernel<coefficients>, pass, edge_blocks));
}

}  // namespace

int LaunchSpectralRows(const RowsPass& pass, int strips, CUstream_st* stream) {
  return pass.gauss7 != 0 ? LaunchRows<true>(pass, strips, stream)
                          : LaunchRows<false>(pass, strips, stream);
}

int LaunchSpectralColumns(const ColumnsPass& pass, CUstream_st* stream) {
  return pass.d_coefficient_q != nullptr ? LaunchColumns<true>(pass, stream)
                                         : LaunchColumns<false>(pass, stream);
}

}  // namespace patchbay::ops
