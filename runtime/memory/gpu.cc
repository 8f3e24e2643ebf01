#include "runtime/memory/gpu.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/memory/gpu_advice.h"

#if PATCHBAY_CUDA_API
#include "runtime/memory/cuda_status.h"
#endif

namespace patchbay::memory {

OwnedGpuStream::OwnedGpuStream(OwnedGpuStream&& other) noexcept
    : stream_(std::exchange(other.stream_, nullptr)) {}

OwnedGpuStream& OwnedGpuStream::operator=(OwnedGpuStream&& other) noexcept {
  std::swap(stream_, other.stream_);
  return *this;
}

GpuEvent::GpuEvent(GpuEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

GpuEvent& GpuEvent::operator=(GpuEvent&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

StatusOr<int> GpuIndexOf(std::string_view uuid) {
  for (const GpuDescription& gpu : ListGpus()) {
    if (gpu.uuid == uuid) return gpu.index;
  }
  return NotFound("find gpu: ", uuid, ": not visible to this process");
}

#if PATCHBAY_CUDA_API

namespace {

std::string UuidText(const cudaUUID_t& uuid) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text.push_back(kHex[byte >> 4]);
    text.push_back(kHex[byte & 15]);
  }
  return text;
}

GpuSharing SharingOf(int device) {
  int mode = cudaComputeModeDefault;
  if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, device) != cudaSuccess) {
    (void)cudaGetLastError();
  }
  if (mode == cudaComputeModeDefault) return GpuSharing::kShared;
  return mode == cudaComputeModeProhibited ? GpuSharing::kProhibited : GpuSharing::kExclusive;
}

std::string WhyNone(cudaError_t error) {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  const std::string why = WhyNoGpus(driver, runtime);
  const bool explained =
      error == cudaSuccess || error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
  return explained ? why : StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

}  // namespace

bool BuiltWithCuda() { return true; }

std::vector<GpuDescription> ListGpus(std::string* reason) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    count = 0;
  }
  if (reason != nullptr) *reason = count > 0 ? "" : WhyNone(error);
  std::vector<GpuDescription> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    const std::string name = properties.name;
    gpus.push_back({index, UuidText(properties.uuid), name, properties.totalGlobalMem,
                    properties.major, properties.minor, SharingOf(index),
                    name.find(" MIG ") != std::string::npos});
  }
  return gpus;
}

Status SelectGpu(int index) { return FromCuda("select gpu", cudaSetDevice(index)); }

StatusOr<GpuMemory> MemoryOf(int index) {
  PB_RETURN_IF_ERROR(SelectGpu(index));
  std::size_t free_bytes = 0, total_bytes = 0;
  PB_RETURN_IF_ERROR(
      FromCuda(StrCat("ask gpu ", index), cudaMemGetInfo(&free_bytes, &total_bytes)));
  return GpuMemory{free_bytes, total_bytes};
}

Status GpuAnswers(std::string_view uuid) {
  PB_ASSIGN_OR_RETURN(const int index, GpuIndexOf(uuid));
  return MemoryOf(index).status();
}

StatusOr<OwnedGpuStream> OwnedGpuStream::Create() {
  OwnedGpuStream owned;
  PB_RETURN_IF_ERROR(
      FromCuda("create stream", cudaStreamCreateWithFlags(&owned.stream_, cudaStreamNonBlocking)));
  return owned;
}

OwnedGpuStream::~OwnedGpuStream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

Status OwnedGpuStream::WaitSync() const {
  return FromCuda("wait for stream", cudaStreamSynchronize(stream_));
}

StatusOr<GpuEvent> GpuEvent::Create() {
  GpuEvent event;
  PB_RETURN_IF_ERROR(
      FromCuda("create event", cudaEventCreateWithFlags(&event.event_, cudaEventDisableTiming)));
  return event;
}

StatusOr<GpuEvent> GpuEvent::CreateTimed() {
  GpuEvent event;
  PB_RETURN_IF_ERROR(FromCuda("create event", cudaEventCreateWithFlags(&event.event_, 0)));
  return event;
}

StatusOr<std::int64_t> GpuEvent::NsSince(const GpuEvent& earlier) const {
  float ms = 0;
  const cudaError_t error = cudaEventElapsedTime(&ms, earlier.event_, event_);
  if (error != cudaSuccess) (void)cudaGetLastError();
  PB_RETURN_IF_ERROR(FromCuda("time event", error));
  return static_cast<std::int64_t>(double{ms} * 1e6);
}

GpuEvent::~GpuEvent() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

Status GpuEvent::Record(GpuStream stream) {
  return FromCuda("record event", cudaEventRecord(event_, stream));
}

StatusOr<bool> GpuEvent::Passed() const {
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  PB_RETURN_IF_ERROR(FromCuda("query event", error));
  return true;
}

Status GpuEvent::WaitSync() const {
  return FromCuda("wait for event", cudaEventSynchronize(event_));
}

#else

bool BuiltWithCuda() { return false; }

std::vector<GpuDescription> ListGpus(std::string* reason) {
  if (reason != nullptr) *reason = "this build has no CUDA";
  return {};
}

Status SelectGpu(int) { return NoCuda("select gpu"); }
StatusOr<GpuMemory> MemoryOf(int) { return NoCuda("ask gpu"); }
Status GpuAnswers(std::string_view) { return NoCuda("ask gpu"); }
StatusOr<OwnedGpuStream> OwnedGpuStream::Create() { return NoCuda("create stream"); }
OwnedGpuStream::~OwnedGpuStream() = default;
Status OwnedGpuStream::WaitSync() const { return NoCuda("wait for stream"); }
StatusOr<GpuEvent> GpuEvent::Create() { return NoCuda("create event"); }
StatusOr<GpuEvent> GpuEvent::CreateTimed() { return NoCuda("create event"); }
GpuEvent::~GpuEvent() = default;
Status GpuEvent::Record(GpuStream) { return NoCuda("record event"); }
StatusOr<bool> GpuEvent::Passed() const { return NoCuda("query event"); }
Status GpuEvent::WaitSync() const { return NoCuda("wait for event"); }
StatusOr<std::int64_t> GpuEvent::NsSince(const GpuEvent&) const { return NoCuda("time event"); }

#endif

}  // namespace patchbay::memory
