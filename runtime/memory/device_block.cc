#include "runtime/memory/device_block.h"

#include <cstring>
#include <utility>

#include "runtime/core/strings.h"

#if PATCHBAY_CUDA_API
#include "runtime/memory/cuda_status.h"
#endif

namespace patchbay::memory {

DeviceBlock::DeviceBlock(DeviceBlock&& other) noexcept
    : d_data_(std::exchange(other.d_data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      gpu_(other.gpu_),
      imported_(other.imported_) {}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  if (this != &other) {
    Release();
    d_data_ = std::exchange(other.d_data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    gpu_ = other.gpu_;
    imported_ = other.imported_;
  }
  return *this;
}

DeviceBlock::~DeviceBlock() { Release(); }

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

PinnedRegistration::PinnedRegistration(PinnedRegistration&& other) noexcept
    : registered_(std::exchange(other.registered_, nullptr)) {}

PinnedRegistration& PinnedRegistration::operator=(PinnedRegistration&& other) noexcept {
  std::swap(registered_, other.registered_);
  return *this;
}

#if PATCHBAY_CUDA_API

StatusOr<DeviceBlock> DeviceBlock::Allocate(std::uint64_t size_bytes) {
  DeviceBlock block;
  PB_RETURN_IF_ERROR(FromCuda("find current gpu", cudaGetDevice(&block.gpu_)));
  void* address = nullptr;
  PB_RETURN_IF_ERROR(FromCuda(StrCat("allocate device block: ", size_bytes, " bytes"),
                              cudaMalloc(&address, static_cast<std::size_t>(size_bytes))));
  block.d_data_ = static_cast<std::byte*>(address);
  block.size_bytes_ = size_bytes;
  return block;
}

StatusOr<DeviceBlockHandle> DeviceBlock::Export() const {
  if (d_data_ == nullptr || imported_) {
    return FailedPrecondition("export device block: only its owner can");
  }
  static_assert(sizeof(cudaIpcMemHandle_t) == 64);
  DeviceBlockHandle handle;
  cudaIpcMemHandle_t ipc;
  PB_RETURN_IF_ERROR(FromCuda("export device block", cudaIpcGetMemHandle(&ipc, d_data_)));
  std::memcpy(handle.ipc.data(), &ipc, sizeof ipc);
  handle.size_bytes = size_bytes_;
  for (const GpuDescription& gpu : ListGpus()) {
    if (gpu.index == gpu_) handle.gpu_uuid = gpu.uuid;
  }
  return handle;
}

StatusOr<DeviceBlock> DeviceBlock::Import(const DeviceBlockHandle& handle) {
  DeviceBlock block;
  PB_ASSIGN_OR_RETURN(block.gpu_, GpuIndexOf(handle.gpu_uuid));
  PB_RETURN_IF_ERROR(SelectGpu(block.gpu_));
  cudaIpcMemHandle_t ipc;
  std::memcpy(&ipc, handle.ipc.data(), sizeof ipc);
  void* address = nullptr;
  PB_RETURN_IF_ERROR(FromCuda("import device block",
                              cudaIpcOpenMemHandle(&address, ipc, cudaIpcMemLazyEnablePeerAccess)));
  block.d_data_ = static_cast<std::byte*>(address);
  block.size_bytes_ = handle.size_bytes;
  block.imported_ = true;
  return block;
}

void DeviceBlock::Release() {
  if (d_data_ == nullptr) return;
  (void)(imported_ ? cudaIpcCloseMemHandle(d_data_) : cudaFree(d_data_));
  d_data_ = nullptr;
  size_bytes_ = 0;
}

StatusOr<PinnedBuffer> PinnedBuffer::Allocate(std::uint64_t size_bytes) {
  void* address = nullptr;
  PB_RETURN_IF_ERROR(FromCuda(
      StrCat("allocate pinned buffer: ", size_bytes, " bytes"),
      cudaHostAlloc(&address, static_cast<std::size_t>(size_bytes), cudaHostAllocPortable)));
  PinnedBuffer buffer;
  buffer.data_ = static_cast<std::byte*>(address);
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) (void)cudaFreeHost(data_);
}

StatusOr<PinnedRegistration> PinnedRegistration::Register(std::span<std::byte> memory) {
  PB_RETURN_IF_ERROR(
      FromCuda(StrCat("pin host memory: ", memory.size(), " bytes"),
               cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable)));
  PinnedRegistration registration;
  registration.registered_ = memory.data();
  return registration;
}

PinnedRegistration::~PinnedRegistration() {
  if (registered_ != nullptr) (void)cudaHostUnregister(registered_);
}

Status CopyToDevice(std::byte* d_to, std::span<const std::byte> h_from, GpuStream stream) {
  return FromCuda("copy to device", cudaMemcpyAsync(d_to, h_from.data(), h_from.size(),
                                                    cudaMemcpyHostToDevice, stream));
}

Status CopyToHost(std::span<std::byte> h_to, const std::byte* d_from, GpuStream stream) {
  return FromCuda("copy to host", cudaMemcpyAsync(h_to.data(), d_from, h_to.size(),
                                                  cudaMemcpyDeviceToHost, stream));
}

Status FillDevice(std::byte* d_to, std::uint8_t value, std::uint64_t size_bytes, GpuStream stream) {
  return FromCuda("fill device memory",
                  cudaMemsetAsync(d_to, value, static_cast<std::size_t>(size_bytes), stream));
}

#else

StatusOr<DeviceBlock> DeviceBlock::Allocate(std::uint64_t) {
  return NoCuda("allocate device block");
}
StatusOr<DeviceBlockHandle> DeviceBlock::Export() const { return NoCuda("export device block"); }
StatusOr<DeviceBlock> DeviceBlock::Import(const DeviceBlockHandle&) {
  return NoCuda("import device block");
}
void DeviceBlock::Release() {}
StatusOr<PinnedBuffer> PinnedBuffer::Allocate(std::uint64_t) {
  return NoCuda("allocate pinned buffer");
}
PinnedBuffer::~PinnedBuffer() = default;
StatusOr<PinnedRegistration> PinnedRegistration::Register(std::span<std::byte>) {
  return NoCuda("pin host memory");
}
PinnedRegistration::~PinnedRegistration() = default;
Status CopyToDevice(std::byte*, std::span<const std::byte>, GpuStream) {
  return NoCuda("copy to device");
}
Status CopyToHost(std::span<std::byte>, const std::byte*, GpuStream) {
  return NoCuda("copy to host");
}
Status FillDevice(std::byte*, std::uint8_t, std::uint64_t, GpuStream) {
  return NoCuda("fill device memory");
}

#endif

}  // namespace patchbay::memory
