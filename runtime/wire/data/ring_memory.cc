#include "runtime/wire/data/ring_memory.h"

#include <utility>

#include "runtime/memory/gpu_advice.h"
#include "runtime/memory/host_buffer.h"

namespace patchbay::data {
namespace {

class HostRingMemory final : public RingMemory {
 public:
  explicit HostRingMemory(memory::MemfdBlock block) : block_(std::move(block)) {}
  std::span<std::byte> host() const override { return block_.bytes(); }
  int host_fd() const override { return block_.fd(); }

 private:
  memory::MemfdBlock block_;
};

constexpr char kInstead[] = ", or leave `device` out: batches then lie in host memory";

StatusOr<memory::DeviceBlock> AllocateSlots(int gpu, std::uint64_t size_bytes) {
  auto block = memory::DeviceBlock::Allocate(size_bytes);
  if (!absl::IsResourceExhausted(block.status())) return block;
  return ResourceExhausted("make ring: slots of ", memory::WhyNoRoom(gpu, size_bytes),
                           ": lower batch.prefetch or batch.global_size", kInstead);
}

/// The handle that other processes need: GPU workers, and a Python trainer, whose ring belongs to
/// the client process.
StatusOr<memory::DeviceBlockHandle> ShareSlots(const memory::DeviceBlock& slots) {
  auto handle = slots.Export();
  if (handle.ok()) return handle;
  return Unavailable("make ring: GPU ", slots.gpu(), " does not share memory between processes (",
                     MessageOf(handle.status()), "), as under WSL", kInstead);
}

class DeviceRingMemory final : public RingMemory {
 public:
  static StatusOr<std::unique_ptr<RingMemory>> Make(int gpu, const RingBytes& bytes) {
    auto made = std::make_unique<DeviceRingMemory>();
    made->gpu_ = gpu;
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
    PB_ASSIGN_OR_RETURN(made->device_, AllocateSlots(gpu, bytes.device));
    PB_ASSIGN_OR_RETURN(made->handle_, ShareSlots(made->device_));
    PB_ASSIGN_OR_RETURN(made->staging_, memory::MemfdBlock::Create("patchbay-staging", bytes.host));
    PB_ASSIGN_OR_RETURN(made->pinned_,
                        memory::PinnedRegistration::Register(made->staging_.bytes()));
    PB_ASSIGN_OR_RETURN(made->stream_, memory::OwnedGpuStream::Create());
    return std::unique_ptr<RingMemory>(std::move(made));
  }
  std::span<std::byte> host() const override { return staging_.bytes(); }
  int host_fd() const override { return staging_.fd(); }
  std::byte* device() const override { return device_.d_data(); }
  std::optional<memory::DeviceBlockHandle> device_handle() const override { return handle_; }
  void KeepUntilExit() override { device_.KeepUntilExit(); }
  Status StageSync(std::uint64_t h_from, std::uint64_t d_to, std::uint64_t size_bytes) override {
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu_));
    PB_RETURN_IF_ERROR(memory::CopyToDevice(
        device_.d_data() + d_to, staging_.bytes().subspan(h_from, size_bytes), stream_.get()));
    return stream_.WaitSync();
  }
  Status MoveSync(std::uint64_t d_from, std::uint64_t h_by, std::uint64_t d_to,
                  std::uint64_t size_bytes) override {
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu_));
    PB_RETURN_IF_ERROR(memory::CopyToHost(staging_.bytes().subspan(h_by, size_bytes),
                                          device_.d_data() + d_from, stream_.get()));
    PB_RETURN_IF_ERROR(stream_.WaitSync());
    return StageSync(h_by, d_to, size_bytes);
  }

 private:
  int gpu_ = 0;
  memory::DeviceBlock device_;
  memory::DeviceBlockHandle handle_;
  memory::MemfdBlock staging_;
  memory::PinnedRegistration pinned_;  // goes before the memory it locks
  memory::OwnedGpuStream stream_;
};

}  // namespace

Status RingMemory::StageSync(std::uint64_t, std::uint64_t, std::uint64_t) {
  return Unimplemented("stage shard: the slots are not on a device");
}

Status RingMemory::MoveSync(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t) {
  return Unimplemented("move shard: the slots are not on a device");
}

StatusOr<RingBytes> RingBytesOf(const SlotLayout& layout, std::uint32_t slots) {
  const std::uint64_t stride = layout.host_stride();
  if (slots == 0 || stride == 0 || stride > memory::kMaxBlockBytes / slots) {
    return InvalidArgument("make ring: ", slots, " slots of ", stride, " bytes: not within 1 and ",
                           memory::kMaxBlockBytes, " bytes in all");
  }
  return RingBytes{stride * slots, layout.device_stride() * slots};
}

StatusOr<std::unique_ptr<RingMemory>> MakeHostRingMemory(std::uint64_t size_bytes) {
  PB_ASSIGN_OR_RETURN(auto block, memory::MemfdBlock::Create("patchbay-ring", size_bytes));
  return std::unique_ptr<RingMemory>(std::make_unique<HostRingMemory>(std::move(block)));
}

StatusOr<std::unique_ptr<RingMemory>> MakeDeviceRingMemory(int gpu, const RingBytes& bytes) {
  return DeviceRingMemory::Make(gpu, bytes);
}

}  // namespace patchbay::data
