// The view of a .cu file when the CPU plays the device: the API, the words before functions and
// variables, the coordinates of a thread, barriers, warps and atomics. A block's threads are fibers
// (fibers.cc). Not here: `extern __shared__` (runtime/memory/kernel_launch.cuh has the accessor)
// and `<<<>>>`.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

namespace patchbay::emulated_cuda {

/// Where the running thread is.
struct Place {
  uint3 thread, block;
  dim3 block_size{}, grid_size{};
};
/// The place of the running fiber; null outside kernels. Set by the scheduler of fibers alone.
extern __thread const Place* running_place;

// ThreadSanitizer would take the scheduler's writes for races with these reads.
#if defined(__SANITIZE_THREAD__)
__attribute__((noinline, no_sanitize("thread"))) inline const Place& Here() {
  return *running_place;
}
#else
inline const Place& Here() { return *running_place; }
#endif

template <auto Of, auto Axis>
struct Coordinate {
  operator unsigned() const { return Here().*Of.*Axis; }
};
template <auto Of, typename Triple>
struct Coordinates {
  Coordinate<Of, &Triple::x> x;
  Coordinate<Of, &Triple::y> y;
  Coordinate<Of, &Triple::z> z;
};

/// Where in the source a thread waits.
struct Site {
  const char* file;
  int line;
};
enum class Meeting : int { kNone, kBarrier, kWarp, kShuffle, kVote };

void BlockBarrier(Site site);
/// How many threads of the block gave something other than 0.
int BlockCount(int value, Site site);
/// Meets the lanes of `mask`; returns what `lane` gave. A lane outside of the warp gives its own.
std::uint64_t WarpExchange(unsigned mask, std::uint64_t value, int lane, Site site);
unsigned WarpBallot(unsigned mask, bool value, Site site);
void WarpBarrier(unsigned mask, Site site);
unsigned LaneOfWarp();
void* DynamicSharedMemory();

struct KernelCall {
  const void* kernel;
  std::size_t parameter_bytes;
  std::function<void()> run;  ///< one thread
};
cudaError_t Launch(const cudaLaunchConfig_t& config, KernelCall call);
cudaError_t SetDynamicSharedLimit(const void* kernel, int bytes);
cudaError_t CountResidentBlocks(int* blocks, const void* kernel, int threads, std::size_t bytes);

template <typename... Parameters>
constexpr std::size_t ParameterBytes() {
  std::size_t at = 0;
  ((at = (at + alignof(Parameters) - 1) / alignof(Parameters) * alignof(Parameters) +
         sizeof(Parameters)),
   ...);
  return at;
}

template <typename T>
T Exchange(unsigned mask, T value, int lane, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WarpExchange(mask, bits, lane, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace patchbay::emulated_cuda

#define PB_EMULATED_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline constexpr patchbay::emulated_cuda::Coordinates<&patchbay::emulated_cuda::Place::thread,
                                                      uint3>
    threadIdx{};
inline constexpr patchbay::emulated_cuda::Coordinates<&patchbay::emulated_cuda::Place::block, uint3>
    blockIdx{};
inline constexpr patchbay::emulated_cuda::Coordinates<&patchbay::emulated_cuda::Place::block_size,
                                                      dim3>
    blockDim{};
inline constexpr patchbay::emulated_cuda::Coordinates<&patchbay::emulated_cuda::Place::grid_size,
                                                      dim3>
    gridDim{};
inline constexpr int warpSize = 32;

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  static_assert((!std::is_reference_v<Parameters> && ...));
  std::tuple<Parameters...> held(std::forward<Arguments>(arguments)...);
  return patchbay::emulated_cuda::Launch(*config,
                                         {reinterpret_cast<const void*>(kernel),
                                          patchbay::emulated_cuda::ParameterBytes<Parameters...>(),
                                          [kernel, held] { std::apply(kernel, held); }});
}
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int value) {
  return patchbay::emulated_cuda::SetDynamicSharedLimit(reinterpret_cast<const void*>(kernel),
                                                        value);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* kernel, int threads,
                                                          std::size_t dynamic_bytes) {
  return patchbay::emulated_cuda::CountResidentBlocks(blocks, reinterpret_cast<const void*>(kernel),
                                                      threads, dynamic_bytes);
}

inline void __syncthreads(PB_EMULATED_SITE) { patchbay::emulated_cuda::BlockBarrier({file, line}); }
inline int __syncthreads_count(int value, PB_EMULATED_SITE) {
  return patchbay::emulated_cuda::BlockCount(value, {file, line});
}
inline int __syncthreads_or(int value, PB_EMULATED_SITE) {
  return patchbay::emulated_cuda::BlockCount(value, {file, line}) != 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = ~0u, PB_EMULATED_SITE) {
  patchbay::emulated_cuda::WarpBarrier(mask, {file, line});
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, PB_EMULATED_SITE) {
  const int base = static_cast<int>(patchbay::emulated_cuda::LaneOfWarp()) / width * width;
  return patchbay::emulated_cuda::Exchange(mask, value, base + (lane & (width - 1)), {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, PB_EMULATED_SITE) {
  const int self = static_cast<int>(patchbay::emulated_cuda::LaneOfWarp()), lane = self ^ with;
  const bool inside = lane / width <= self / width;
  return patchbay::emulated_cuda::Exchange(mask, value, inside ? lane : self, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, PB_EMULATED_SITE) {
  const int self = static_cast<int>(patchbay::emulated_cuda::LaneOfWarp());
  const int lane = self + static_cast<int>(by);
  const bool inside = lane / width == self / width;
  return patchbay::emulated_cuda::Exchange(mask, value, inside ? lane : self, {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, PB_EMULATED_SITE) {
  const int self = static_cast<int>(patchbay::emulated_cuda::LaneOfWarp());
  const int lane = self - static_cast<int>(by);
  const bool inside = lane >= self / width * width;
  return patchbay::emulated_cuda::Exchange(mask, value, inside ? lane : self, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int value, PB_EMULATED_SITE) {
  return patchbay::emulated_cuda::WarpBallot(mask, value != 0, {file, line});
}
inline int __any_sync(unsigned mask, int value, PB_EMULATED_SITE) {
  return patchbay::emulated_cuda::WarpBallot(mask, value != 0, {file, line}) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int value, PB_EMULATED_SITE) {
  return patchbay::emulated_cuda::WarpBallot(mask, value != 0, {file, line}) == mask ? 1 : 0;
}

inline int atomicAdd(int* at, int by) { return __atomic_fetch_add(at, by, __ATOMIC_RELAXED); }
inline unsigned atomicAdd(unsigned* at, unsigned by) {
  return __atomic_fetch_add(at, by, __ATOMIC_RELAXED);
}
inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long by) {
  return __atomic_fetch_add(at, by, __ATOMIC_RELAXED);
}
inline unsigned atomicCAS(unsigned* at, unsigned expected, unsigned value) {
  __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline unsigned atomicOr(unsigned* at, unsigned value) {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomicMax(T* at, T value) {
  static_assert(std::is_integral_v<T>);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <typename T>
T atomicMin(T* at, T value) {
  static_assert(std::is_integral_v<T>);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (value < old &&
         !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

template <typename T>
T __ldg(const T* at) {
  return *at;
}
/// Products that the compiler cannot fuse with an addition.
inline float __fmul_rn(float a, float b) {
  float product = a * b;
  __asm__("" : "+x"(product));
  return product;
}
inline double __dmul_rn(double a, double b) {
  double product = a * b;
  __asm__("" : "+x"(product));
  return product;
}
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
inline int __ffs(int value) { return __builtin_ffs(value); }

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct uchar3 {
  unsigned char x, y, z;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
