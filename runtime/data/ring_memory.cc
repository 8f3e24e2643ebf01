#include "runtime/data/ring_memory.h"

#include <cstring>
#include <utility>

#include "runtime/memory/memfd_block.h"

namespace patchbay::data {
namespace {

class HostRingMemory final : public RingMemory {
 public:
  explicit HostRingMemory(memory::MemfdBlock block) : block_(std::move(block)) {}
  std::span<std::byte> host() const override { return block_.bytes(); }
  int host_fd() const override { return block_.fd(); }
  Status CopySync(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) override {
    std::memcpy(block_.data() + to, block_.data() + from, size_bytes);
    return absl::OkStatus();
  }

 private:
  memory::MemfdBlock block_;
};

class DeviceRingMemory final : public RingMemory {
 public:
  static StatusOr<std::unique_ptr<RingMemory>> Make(int gpu, std::uint64_t size_bytes) {
    auto made = std::make_unique<DeviceRingMemory>();
    made->gpu_ = gpu;
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
    PB_ASSIGN_OR_RETURN(made->device_, memory::DeviceBlock::Allocate(size_bytes));
    PB_ASSIGN_OR_RETURN(made->handle_, made->device_.Export());
    PB_ASSIGN_OR_RETURN(made->staging_, memory::MemfdBlock::Create("patchbay-staging", size_bytes));
    PB_ASSIGN_OR_RETURN(made->pinned_,
                        memory::PinnedRegistration::Register(made->staging_.bytes()));
    PB_ASSIGN_OR_RETURN(made->stream_, memory::OwnedGpuStream::Create());
    return std::unique_ptr<RingMemory>(std::move(made));
  }
  std::span<std::byte> host() const override { return staging_.bytes(); }
  int host_fd() const override { return staging_.fd(); }
  std::byte* device() const override { return device_.d_data(); }
  std::optional<memory::DeviceBlockHandle> device_handle() const override { return handle_; }
  Status StageSync(std::uint64_t offset_bytes, std::uint64_t size_bytes) override {
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu_));
    PB_RETURN_IF_ERROR(memory::CopyToDevice(device_.d_data() + offset_bytes,
                                            staging_.bytes().subspan(offset_bytes, size_bytes),
                                            stream_.get()));
    return stream_.WaitSync();
  }
  Status CopySync(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) override {
    // Through the staging area, whose range of the target slot is unused: rare enough to be simple.
    PB_RETURN_IF_ERROR(memory::SelectGpu(gpu_));
    PB_RETURN_IF_ERROR(memory::CopyToHost(staging_.bytes().subspan(to, size_bytes),
                                          device_.d_data() + from, stream_.get()));
    PB_RETURN_IF_ERROR(stream_.WaitSync());
    return StageSync(to, size_bytes);
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

Status RingMemory::StageSync(std::uint64_t, std::uint64_t) { return absl::OkStatus(); }

StatusOr<std::uint64_t> RingBytes(std::uint32_t slots, std::uint64_t slot_bytes) {
  if (slots == 0 || slot_bytes == 0 || slot_bytes > memory::kMaxBlockBytes ||
      SlotStride(slot_bytes) > memory::kMaxBlockBytes / slots) {
    return absl::InvalidArgumentError(StrCat("make ring: ", slots, " slots of ", slot_bytes,
                                             " bytes: not within 1 and ", memory::kMaxBlockBytes,
                                             " bytes in all"));
  }
  return SlotStride(slot_bytes) * slots;
}

StatusOr<std::unique_ptr<RingMemory>> MakeHostRingMemory(std::uint64_t size_bytes) {
  PB_ASSIGN_OR_RETURN(auto block, memory::MemfdBlock::Create("patchbay-ring", size_bytes));
  return std::unique_ptr<RingMemory>(std::make_unique<HostRingMemory>(std::move(block)));
}

StatusOr<std::unique_ptr<RingMemory>> MakeDeviceRingMemory(int gpu, std::uint64_t size_bytes) {
  return DeviceRingMemory::Make(gpu, size_bytes);
}

}  // namespace patchbay::data
