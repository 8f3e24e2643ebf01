// Programs with one fault each, and the same without it: `planted_faults NAME broken|whole`;
// without a name it lists them, with --threads or --addresses those that a sanitizer alone sees.
// Exits with 0 when the results are right and no error was reported. planted_faults_test.py runs
// them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/memory/kernel_launch.cuh"

namespace {

using patchbay::memory::DynamicShared;
using patchbay::memory::LaunchKernel;

constexpr int kCount = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

/// Ends the program at an error: the fault is found.
void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
  std::exit(2);
}

__global__ void CountUpKernel(int* d_out, int count, int from) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) d_out[i] = from + i;
}
__global__ void CopyKernel(const int* d_in, int* d_out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) d_out[i] = d_in[i];
}

__global__ void ReverseKernel(int* d_out, bool broken) {
  int* sm_values = DynamicShared<int>();
  const int t = static_cast<int>(threadIdx.x);
  sm_values[t] = t;
  if (!broken) __syncthreads();
  d_out[t] = sm_values[kCount - 1 - t];
}

/// Every thread comes to hold the sum of all.
__global__ void SumKernel(int* d_out, bool broken) {
  int* sm_values = DynamicShared<int>();
  const int t = static_cast<int>(threadIdx.x);
  sm_values[t] = t;
  __syncthreads();
  for (int step = 1; step < kCount; step *= 2) {
    const int other = sm_values[(t + step) % kCount];
    if (!broken) __syncthreads();
    sm_values[t] += other;
    __syncthreads();
  }
  d_out[t] = sm_values[t];
}

__global__ void HalfBarrierKernel(int* d_out, bool broken) {
  const int t = static_cast<int>(threadIdx.x);
  if (!broken || t < 100) __syncthreads();
  d_out[t] = t;
}

__global__ void HalfShuffleKernel(int* d_out, bool broken) {
  const int t = static_cast<int>(threadIdx.x);
  if (broken && t % 2 == 0) {
    d_out[t] = t;
    return;
  }
  d_out[t] = __shfl_xor_sync(~0u, t, 1) ^ 1;
}

__global__ void WideStoreKernel(float* d_out) {
  reinterpret_cast<float4*>(d_out)[threadIdx.x] = make_float4(1, 1, 1, 1);
}

__global__ void AddKernel(int* d_sums) { d_sums[threadIdx.x] += static_cast<int>(threadIdx.x); }

int* Device(std::size_t bytes = kBytes) {
  void* d_memory = nullptr;
  Must(cudaMalloc(&d_memory, bytes), "cudaMalloc");
  return static_cast<int*>(d_memory);
}

int* Pinned() {
  void* memory = nullptr;
  Must(cudaHostAlloc(&memory, kBytes, cudaHostAllocPortable), "cudaHostAlloc");
  return static_cast<int*>(memory);
}

cudaStream_t MakeStream() {
  cudaStream_t stream;
  Must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

std::vector<int> Fetched(const int* d_from, cudaStream_t stream) {
  std::vector<int> made(kCount);
  Must(cudaMemcpyAsync(made.data(), d_from, kBytes, cudaMemcpyDeviceToHost, stream), "copy");
  Must(cudaStreamSynchronize(stream), "wait");
  return made;
}

template <typename Expected>
bool Holds(const std::vector<int>& made, const Expected& expected) {
  for (int i = 0; i < kCount; ++i) {
    if (made[static_cast<std::size_t>(i)] != expected(i)) return false;
  }
  return true;
}
bool CountsUp(const std::vector<int>& made, int from = 0) {
  return Holds(made, [from](int i) { return from + i; });
}

/// All threads count to one place: the emulated device never interrupts them.
__global__ void CountSharedKernel(int* d_out, bool broken) {
  int* sm_count = DynamicShared<int>();
  if (threadIdx.x == 0) *sm_count = 0;
  __syncthreads();
  if (broken) {
    *sm_count += 1;
  } else {
    atomicAdd(sm_count, 1);
  }
  __syncthreads();
  d_out[threadIdx.x] = *sm_count;
}
__global__ void CountGlobalKernel(int* d_count, bool broken) {
  if (broken) {
    *d_count += 1;
  } else {
    atomicAdd(d_count, 1);
  }
}
/// A shuffle waits for the warp and orders no memory.
__global__ void SwapKernel(int* d_out, bool broken) {
  int* sm_values = DynamicShared<int>();
  const int t = static_cast<int>(threadIdx.x);
  sm_values[t] = t;
  __shfl_sync(0xFFFFFFFFu, t, 0);
  if (!broken) __syncwarp();
  d_out[t] = sm_values[t ^ 1];
}

bool LostUpdateShared(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount, kBytes}, nullptr, CountSharedKernel, d_out, broken), "launch");
  return Holds(Fetched(d_out, nullptr), [](int) { return kCount; });
}

bool LostUpdateGlobal(bool broken) {
  int* d_out = Device();
  Must(cudaMemsetAsync(d_out, 0, kBytes, nullptr), "clear");
  Must(LaunchKernel({1, kCount}, nullptr, CountGlobalKernel, d_out, broken), "launch");
  return Holds(Fetched(d_out, nullptr), [](int i) { return i == 0 ? kCount : 0; });
}

bool ShuffleAsBarrier(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount, kBytes}, nullptr, SwapKernel, d_out, broken), "launch");
  return Holds(Fetched(d_out, nullptr), [](int i) { return i ^ 1; });
}

__device__ int Sum(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}
/// Reads behind an array of a thread or of the block, and does not use the values.
__global__ void LocalSumKernel(int* d_out, int count) {
  const int values[4] = {1, 2, 3, 4};
  const int sum = Sum(values, count);
  d_out[threadIdx.x] = count == 4 ? sum : 10;
}
__global__ void StaticSumKernel(int* d_out, int count) {
  __shared__ int sm_values[kCount];
  sm_values[threadIdx.x] = 1;
  __syncthreads();
  const int sum = Sum(sm_values, count);
  d_out[threadIdx.x] = count == kCount ? sum : kCount;
}

bool LocalOverrun(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount}, nullptr, LocalSumKernel, d_out, broken ? 5 : 4), "launch");
  return Holds(Fetched(d_out, nullptr), [](int) { return 10; });
}

bool StaticSharedOverrun(bool broken) {
  int* d_out = Device();
  const int count = broken ? kCount + 1 : kCount;
  Must(LaunchKernel({1, kCount}, nullptr, StaticSumKernel, d_out, count), "launch");
  return Holds(Fetched(d_out, nullptr), [](int) { return kCount; });
}

bool MissingBarrier(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount, kBytes}, nullptr, ReverseKernel, d_out, broken), "launch");
  return Holds(Fetched(d_out, nullptr), [](int i) { return kCount - 1 - i; });
}

bool SharedRace(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount, kBytes}, nullptr, SumKernel, d_out, broken), "launch");
  return Holds(Fetched(d_out, nullptr), [](int) { return kCount * (kCount - 1) / 2; });
}

bool DivergentBarrier(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount}, nullptr, HalfBarrierKernel, d_out, broken), "launch");
  return CountsUp(Fetched(d_out, nullptr));
}

bool DivergentShuffle(bool broken) {
  int* d_out = Device();
  Must(LaunchKernel({1, kCount}, nullptr, HalfShuffleKernel, d_out, broken), "launch");
  return CountsUp(Fetched(d_out, nullptr));
}

bool MissingEvent(bool broken) {
  int *d_made = Device(), *d_out = Device();
  const cudaStream_t maker = MakeStream(), taker = MakeStream();
  cudaEvent_t made;
  Must(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "event");
  Must(LaunchKernel({1, kCount}, maker, CountUpKernel, d_made, kCount, 5), "launch");
  Must(cudaEventRecord(made, maker), "record");
  if (!broken) Must(cudaStreamWaitEvent(taker, made), "wait");
  Must(LaunchKernel({1, kCount}, taker, CopyKernel, static_cast<const int*>(d_made), d_out, kCount),
       "launch");
  return CountsUp(Fetched(d_out, taker), 5);
}

/// A pinned buffer is filled again for a second copy.
bool EarlyReuse(bool broken) {
  int *first = Device(), *second = Device(), *h_buffer = Pinned();
  const cudaStream_t stream = MakeStream();
  for (int i = 0; i < kCount; ++i) h_buffer[i] = i;
  Must(cudaMemcpyAsync(first, h_buffer, kBytes, cudaMemcpyHostToDevice, stream), "copy");
  if (!broken) Must(cudaStreamSynchronize(stream), "wait");
  for (int i = 0; i < kCount; ++i) h_buffer[i] = 9 + i;
  Must(cudaMemcpyAsync(second, h_buffer, kBytes, cudaMemcpyHostToDevice, stream), "copy");
  return CountsUp(Fetched(first, stream)) && CountsUp(Fetched(second, stream), 9);
}

bool EarlyRead(bool broken) {
  int *d_made = Device(), *h_made = Pinned();
  const cudaStream_t stream = MakeStream();
  Must(LaunchKernel({1, kCount}, stream, CountUpKernel, d_made, kCount, 3), "launch");
  Must(cudaMemcpyAsync(h_made, d_made, kBytes, cudaMemcpyDeviceToHost, stream), "copy");
  if (!broken) Must(cudaStreamSynchronize(stream), "wait");
  return CountsUp({h_made, h_made + kCount}, 3);
}

bool FreedInUse(bool broken) {
  int *d_made = Device(), *h_buffer = Pinned();
  const cudaStream_t stream = MakeStream();
  for (int i = 0; i < kCount; ++i) h_buffer[i] = i;
  Must(cudaMemcpyAsync(d_made, h_buffer, kBytes, cudaMemcpyHostToDevice, stream), "copy");
  if (!broken) Must(cudaStreamSynchronize(stream), "wait");
  Must(cudaFreeHost(h_buffer), "free");
  return CountsUp(Fetched(d_made, stream));
}

bool WrongDirection(bool broken) {
  int *d_made = Device(), *h_buffer = Pinned();
  for (int i = 0; i < kCount; ++i) h_buffer[i] = i;
  Must(cudaMemcpyAsync(d_made, h_buffer, kBytes,
                       broken ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, nullptr),
       "copy");
  return CountsUp(Fetched(d_made, nullptr));
}

bool WrongSize(bool broken) {
  int* d_made = Device();
  std::vector<int> values(2 * kCount);
  for (int i = 0; i < 2 * kCount; ++i) values[static_cast<std::size_t>(i)] = i;
  Must(cudaMemcpyAsync(d_made, values.data(), broken ? kBytes + 4 : kBytes, cudaMemcpyHostToDevice,
                       nullptr),
       "copy");
  return CountsUp(Fetched(d_made, nullptr));
}

bool ReadPastEnd(bool broken) {
  int *d_made = Device(), *d_out = Device(2 * kBytes);
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  Must(LaunchKernel({2, kCount}, nullptr, CopyKernel, static_cast<const int*>(d_made), d_out,
                    broken ? kCount + 1 : kCount),
       "launch");
  return CountsUp(Fetched(d_out, nullptr));
}

bool WritePastEnd(bool broken) {
  constexpr int kOdd = 100;  // the block does not end where its pages do
  int* d_made = Device(kOdd * sizeof(int));
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, broken ? kOdd + 1 : kOdd, 0),
       "launch");
  Must(cudaFree(d_made), "free");
  return true;
}

bool HostAccess(bool broken) {
  int* d_made = Device();
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  const std::vector<int> made = Fetched(d_made, nullptr);
  return (broken ? d_made[7] : made[7]) == 7;
}

bool WrongDevice(bool broken) {
  int* d_made = Device();
  Must(cudaSetDevice(broken ? 1 : 0), "select");
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  Must(cudaDeviceSynchronize(), "wait");
  return CountsUp(Fetched(d_made, nullptr));
}

bool BeyondLimits(bool broken) {
  int* d_made = Device();
  const unsigned threads = broken ? 2'048 : kCount;
  Must(LaunchKernel({1, threads}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  return CountsUp(Fetched(d_made, nullptr));
}

struct Large {
  int values[1'025];
};
__global__ void LargeKernel(Large large, int* d_out) { d_out[threadIdx.x] = large.values[0]; }

bool TooManyArguments(bool broken) {
  int* d_made = Device();
  if (broken) {
    Must(LaunchKernel({1, kCount}, nullptr, LargeKernel, Large{}, d_made), "launch");
  } else {
    Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  }
  return CountsUp(Fetched(d_made, nullptr));
}

bool UnalignedStore(bool broken) {
  auto* d_made = reinterpret_cast<float*>(Device(kBytes + 16));
  Must(LaunchKernel({1, kCount / 4}, nullptr, WideStoreKernel, d_made + (broken ? 1 : 0)),
       "launch");
  Must(cudaDeviceSynchronize(), "wait");
  return true;
}

/// An unchecked failure shows up at an unrelated call.
bool StaleError(bool broken) {
  void* never = nullptr;
  (void)cudaMalloc(&never, std::size_t{1} << 50);
  if (!broken) (void)cudaGetLastError();
  int* d_made = Device();
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, d_made, kCount, 0), "launch");
  Must(cudaGetLastError(), "the launch");
  return CountsUp(Fetched(d_made, nullptr));
}

bool UninitialisedRead(bool broken) {
  int* d_sums = Device();
  if (!broken) Must(cudaMemsetAsync(d_sums, 0, kBytes, nullptr), "clear");
  Must(LaunchKernel({1, kCount}, nullptr, AddKernel, d_sums), "launch");
  return CountsUp(Fetched(d_sums, nullptr));
}

/// The other process's part: it opens the block, says so and fills it once it is told to; `late`:
/// it says so before it opens the block, and opens it when told to.
int FillImported(int from, int to, bool late) {
  cudaIpcMemHandle_t handle;
  char go = 0;
  if (::read(from, &handle, sizeof(handle)) != sizeof(handle)) return 3;
  void* d_memory = nullptr;
  const auto open = [&] {
    Must(cudaIpcOpenMemHandle(&d_memory, handle, cudaIpcMemLazyEnablePeerAccess), "open");
  };
  if (!late) open();
  if (::write(to, "r", 1) != 1 || ::read(from, &go, 1) != 1) return 3;
  if (late) open();
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, static_cast<int*>(d_memory), kCount, 0),
       "launch");
  Must(cudaDeviceSynchronize(), "wait");
  return 0;
}

bool FreeBesideImport(bool broken, bool late) {
  int pipe[2], back[2];
  if (::pipe(pipe) != 0 || ::pipe(back) != 0) return false;
  const pid_t child = ::fork();  // before the first call: neither has a device yet
  if (child == 0) std::_Exit(FillImported(pipe[0], back[1], late));
  ::close(back[1]);  // so that the child's end is seen where it reports nothing
  int* d_made = Device();
  cudaIpcMemHandle_t handle;
  Must(cudaIpcGetMemHandle(&handle, d_made), "export");
  bool sent = ::write(pipe[1], &handle, sizeof(handle)) == sizeof(handle);
  char ready = 0;
  sent = ::read(back[0], &ready, 1) == 1 && sent;
  if (broken) Must(cudaFree(d_made), "free");
  sent = ::write(pipe[1], "g", 1) == 1 && sent;
  int status = 0;
  ::waitpid(child, &status, 0);
  return sent && status == 0 && (broken || CountsUp(Fetched(d_made, nullptr)));
}

bool IpcAfterFree(bool broken) { return FreeBesideImport(broken, false); }

bool IpcOpenedAfterFree(bool broken) { return FreeBesideImport(broken, true); }

bool IpcInOneProcess(bool broken) {
  int* d_made = Device();
  cudaIpcMemHandle_t handle;
  Must(cudaIpcGetMemHandle(&handle, d_made), "export");
  void* d_memory = d_made;
  if (broken) Must(cudaIpcOpenMemHandle(&d_memory, handle, cudaIpcMemLazyEnablePeerAccess), "open");
  Must(LaunchKernel({1, kCount}, nullptr, CountUpKernel, static_cast<int*>(d_memory), kCount, 0),
       "launch");
  return CountsUp(Fetched(d_made, nullptr));
}

struct Fault {
  const char* name;
  bool (*run)(bool broken);
};
constexpr Fault kFaults[] = {
    {"missing_barrier", MissingBarrier},
    {"shared_race", SharedRace},
    {"divergent_barrier", DivergentBarrier},
    {"divergent_shuffle", DivergentShuffle},
    {"missing_event", MissingEvent},
    {"early_reuse", EarlyReuse},
    {"early_read", EarlyRead},
    {"freed_in_use", FreedInUse},
    {"wrong_direction", WrongDirection},
    {"wrong_size", WrongSize},
    {"read_past_end", ReadPastEnd},
    {"write_past_end", WritePastEnd},
    {"host_access", HostAccess},
    {"wrong_device", WrongDevice},
    {"beyond_limits", BeyondLimits},
    {"too_many_arguments", TooManyArguments},
    {"unaligned_store", UnalignedStore},
    {"stale_error", StaleError},
    {"uninitialised_read", UninitialisedRead},
    {"ipc_after_free", IpcAfterFree},
    {"ipc_opened_after_free", IpcOpenedAfterFree},
    {"ipc_in_one_process", IpcInOneProcess},
};

/// Faults that ThreadSanitizer alone sees.
constexpr Fault kFaultsOfThreads[] = {
    {"lost_update_shared", LostUpdateShared},
    {"lost_update_global", LostUpdateGlobal},
    {"shuffle_as_barrier", ShuffleAsBarrier},
};

/// Faults that AddressSanitizer alone sees.
constexpr Fault kFaultsOfAddresses[] = {
    {"local_overrun", LocalOverrun},
    {"static_shared_overrun", StaticSharedOverrun},
};

template <typename Faults>
const Fault* Find(const Faults& faults, const char* name) {
  for (const Fault& fault : faults) {
    if (std::strcmp(fault.name, name) == 0) return &fault;
  }
  return nullptr;
}

template <typename Faults>
int List(const Faults& faults) {
  for (const Fault& fault : faults) std::printf("%s\n", fault.name);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return List(kFaults);
  if (std::strcmp(argv[1], "--threads") == 0) return List(kFaultsOfThreads);
  if (std::strcmp(argv[1], "--addresses") == 0) return List(kFaultsOfAddresses);
  const Fault* fault = Find(kFaults, argv[1]);
  if (fault == nullptr) fault = Find(kFaultsOfThreads, argv[1]);
  if (fault == nullptr) fault = Find(kFaultsOfAddresses, argv[1]);
  if (fault == nullptr) return 4;
  if (fault->run(argc > 2 && std::strcmp(argv[2], "broken") == 0)) return 0;
  std::fprintf(stderr, "wrong values\n");
  return 1;
}
