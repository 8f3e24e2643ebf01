#include "runtime/memory/gpu.h"

#include <utility>

#include "runtime/base/strings.h"

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
  return absl::NotFoundError(StrCat("find gpu: ", uuid, ": not visible to this process"));
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

}  // namespace

bool BuiltWithCuda() { return true; }

std::vector<GpuDescription> ListGpus(std::string* reason) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    count = 0;
  }
  if (reason != nullptr) {
    *reason = count > 0 ? "" : error == cudaSuccess ? "no device" : cudaGetErrorString(error);
  }
  std::vector<GpuDescription> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    gpus.push_back({index, UuidText(properties.uuid), properties.name, properties.totalGlobalMem,
                    properties.major, properties.minor});
  }
  return gpus;
}

Status SelectGpu(int index) { return FromCuda("select gpu", cudaSetDevice(index)); }

Status GpuAnswers(std::string_view uuid) {
  PB_ASSIGN_OR_RETURN(const int index, GpuIndexOf(uuid));
  PB_RETURN_IF_ERROR(SelectGpu(index));
  std::size_t free_bytes = 0, total_bytes = 0;
  return FromCuda(StrCat("ask gpu: ", uuid), cudaMemGetInfo(&free_bytes, &total_bytes));
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

namespace {

Status NoCuda(std::string_view doing) {
  return absl::UnimplementedError(StrCat(doing, ": this build has no CUDA"));
}

}  // namespace

bool BuiltWithCuda() { return false; }

std::vector<GpuDescription> ListGpus(std::string* reason) {
  if (reason != nullptr) *reason = "this build has no CUDA";
  return {};
}

Status SelectGpu(int) { return NoCuda("select gpu"); }
Status GpuAnswers(std::string_view) { return NoCuda("ask gpu"); }
StatusOr<OwnedGpuStream> OwnedGpuStream::Create() { return NoCuda("create stream"); }
OwnedGpuStream::~OwnedGpuStream() = default;
Status OwnedGpuStream::WaitSync() const { return NoCuda("wait for stream"); }
StatusOr<GpuEvent> GpuEvent::Create() { return NoCuda("create event"); }
GpuEvent::~GpuEvent() = default;
Status GpuEvent::Record(GpuStream) { return NoCuda("record event"); }
StatusOr<bool> GpuEvent::Passed() const { return NoCuda("query event"); }
Status GpuEvent::WaitSync() const { return NoCuda("wait for event"); }

#endif

}  // namespace patchbay::memory
