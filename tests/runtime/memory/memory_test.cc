#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "runtime/memory/gpu_processes.h"
#include "runtime/memory/host_buffer.h"

namespace patchbay::memory {
namespace {

constexpr std::uint64_t kBytes = 3 * 4096 + 5;

TEST(MemfdBlock, IsZeroedAndSharedWithWhoeverMapsItsDescriptor) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_TRUE(std::all_of(owner->bytes().begin(), owner->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  auto peer = MemfdBlock::Map(UniqueFd(::dup(owner->fd())), kBytes);
  ASSERT_TRUE(peer.ok()) << peer.status();
  peer->bytes()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(owner->bytes()[kBytes - 1], std::byte{7});
}

/// KiB of a mapping that the kernel has mapped by whole huge pages.
long HugeKib(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream start;
  start << std::hex << reinterpret_cast<std::uintptr_t>(address) << '-';
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(start.str())) continue;
  while (std::getline(maps, line) && !line.starts_with("ShmemPmdMapped:")) continue;
  return std::atol(line.substr(std::min(line.size(), line.find(':') + 1)).c_str());
}

TEST(MemfdBlock, IsMadeOfHugePagesThatEveryProcessMapsWhole) {
  constexpr std::uint64_t kHuge = 2u << 20, kSize = 2 * kHuge + 5;
  auto owner = MemfdBlock::Create("ring", kSize);
  ASSERT_TRUE(owner.ok()) << owner.status();
  auto peer = MemfdBlock::Map(UniqueFd(::dup(owner->fd())), kSize);
  ASSERT_TRUE(peer.ok()) << peer.status();
  for (const MemfdBlock* block : {&*owner, &*peer}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % kHuge, 0u);
  }
  EXPECT_TRUE(std::all_of(owner->bytes().begin(), owner->bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  if (HugeKib(owner->data()) == 0) GTEST_SKIP() << "this kernel gave no huge page";
  const Prefault prefault(peer->bytes());
  EXPECT_EQ(HugeKib(owner->data()), 4096);
  EXPECT_EQ(HugeKib(peer->data()), 4096);
}

TEST(MemfdBlock, AnotherProcessWritesIntoIt) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    auto peer = MemfdBlock::Map(UniqueFd(::dup(owner->fd())), kBytes);
    if (!peer.ok()) ::_exit(1);
    peer->bytes()[17] = std::byte{42};
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(owner->bytes()[17], std::byte{42});
}

TEST(MemfdBlock, ItsSizeCanNeverChange) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok());
  EXPECT_NE(::ftruncate(owner->fd(), 1), 0);
  EXPECT_NE(::ftruncate(owner->fd(), 1 << 20), 0);
  EXPECT_NE(::fcntl(owner->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(MemfdBlock, RefusesDescriptorsItCannotTrust) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok());
  const auto code = [](UniqueFd fd, std::uint64_t size) {
    return MemfdBlock::Map(std::move(fd), size).status().code();
  };
  EXPECT_EQ(code(UniqueFd(::dup(owner->fd())), kBytes + 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(UniqueFd(::dup(owner->fd())), 0), absl::StatusCode::kInvalidArgument);
  UniqueFd unsealed(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_EQ(code(std::move(unsealed), kBytes), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)), kBytes),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(UniqueFd(), kBytes), absl::StatusCode::kInvalidArgument);
}

TEST(MemfdBlock, RefusesSizesThatCannotBe) {
  EXPECT_EQ(MemfdBlock::Create("x", 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MemfdBlock::Create("x", kMaxBlockBytes + 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MemfdBlock, MovingKeepsTheMappingAndItsMemory) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok());
  owner->bytes()[0] = std::byte{9};
  MemfdBlock moved = *std::move(owner);
  MemfdBlock again;
  again = std::move(moved);
  EXPECT_FALSE(moved.valid());  // NOLINT: what a moved-from block must be
  EXPECT_EQ(again.bytes()[0], std::byte{9});
}

/// Pages of this process's mapping that are there, of all in `bytes`.
std::size_t PagesMapped(std::span<std::byte> bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const UniqueFd pagemap = *OpenFile(Folders::OfThisUser(), "/proc/self/pagemap", O_RDONLY);
  std::size_t mapped = 0;
  for (std::size_t at = 0; at < bytes.size(); at += page) {
    std::uint64_t entry = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data() + at);
    PB_CHECK(pread(pagemap.get(), &entry, sizeof entry,
                   static_cast<off_t>(address / page * sizeof entry)) == sizeof entry);
    mapped += entry >> 63;
  }
  return mapped;
}

TEST(Prefault, MapsEveryPageAndAltersNone) {
  auto owner = MemfdBlock::Create("ring", kBytes);
  ASSERT_TRUE(owner.ok());
  for (std::size_t i = 0; i < kBytes; ++i) owner->bytes()[i] = static_cast<std::byte>(i % 251);
  auto peer = MemfdBlock::Map(UniqueFd(::dup(owner->fd())), kBytes);
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(PagesMapped(peer->bytes()), 0u);
  if (::madvise(peer->data(), 1, MADV_POPULATE_WRITE) != 0) GTEST_SKIP() << "a kernel before 5.14";
  const Prefault prefault(peer->bytes());
  EXPECT_EQ(PagesMapped(peer->bytes()), 4u);
  for (std::size_t i = 0; i < kBytes; ++i) {
    ASSERT_EQ(peer->bytes()[i], static_cast<std::byte>(i % 251)) << i;
  }
}

TEST(HostBuffer, IsZeroedAlignedAndRefusesNonsense) {
  auto buffer = HostBuffer::Allocate(5u << 20);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096, 0u);
  EXPECT_EQ(buffer->bytes().back(), std::byte{0});
  HostBuffer moved = *std::move(buffer);
  moved.bytes().front() = std::byte{1};
  EXPECT_EQ(HostBuffer::Allocate(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(HostBuffer::Allocate(kMaxBlockBytes + 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Gpu, AListWithoutGpusSaysWhy) {
  std::string reason;
  const auto gpus = ListGpus(&reason);
  EXPECT_EQ(gpus.empty(), !reason.empty());
  EXPECT_EQ(GpuIndexOf("GPU-none").status().code(), absl::StatusCode::kNotFound);
}

TEST(Gpu, WithoutADeviceEveryAllocationIsAnErrorAndNotACrash) {
  if (!ListGpus().empty()) GTEST_SKIP() << "this machine has a GPU";
  const auto expected =
      BuiltWithCuda() ? absl::StatusCode::kUnavailable : absl::StatusCode::kUnimplemented;
  const auto code = DeviceBlock::Allocate(16).status().code();
  EXPECT_EQ(code, expected);
  EXPECT_FALSE(PinnedBuffer::Allocate(16).ok());
  EXPECT_FALSE(OwnedGpuStream::Create().ok());
  EXPECT_FALSE(GpuEvent::Create().ok());
  EXPECT_FALSE(DeviceBlock::Import({}).ok());
  EXPECT_FALSE(DeviceBlock().Export().ok());
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (ListGpus(&reason).empty()) GTEST_SKIP() << "no GPU: " << reason;
    ASSERT_TRUE(SelectGpu(0).ok());
  }
};

TEST_F(OnGpu, BytesTravelThereAndBack) {
  auto block = DeviceBlock::Allocate(1 << 20);
  auto up = PinnedBuffer::Allocate(1 << 20);
  auto down = PinnedBuffer::Allocate(1 << 20);
  auto stream = OwnedGpuStream::Create();
  auto event = GpuEvent::Create();
  ASSERT_TRUE(block.ok() && up.ok() && down.ok() && stream.ok() && event.ok());
  for (std::size_t i = 0; i < up->bytes().size(); ++i) {
    up->bytes()[i] = static_cast<std::byte>(i * 31);
  }
  ASSERT_TRUE(CopyToDevice(block->d_data(), up->bytes(), stream->get()).ok());
  ASSERT_TRUE(CopyToHost(down->bytes(), block->d_data(), stream->get()).ok());
  ASSERT_TRUE(event->Record(stream->get()).ok());
  ASSERT_TRUE(event->WaitSync().ok());
  EXPECT_TRUE(*event->Passed());
  EXPECT_TRUE(std::equal(up->bytes().begin(), up->bytes().end(), down->bytes().begin()));
}

TEST_F(OnGpu, ASharedBlockCanBePinned) {
  auto block = MemfdBlock::Create("ring", 1 << 20);
  ASSERT_TRUE(block.ok());
  auto pinned = PinnedRegistration::Register(block->bytes());
  EXPECT_TRUE(pinned.ok()) << pinned.status();
}

TEST_F(OnGpu, AnExportedBlockNamesItsGpuAndSize) {
  auto block = DeviceBlock::Allocate(1 << 20);
  ASSERT_TRUE(block.ok());
  auto handle = block->Export();
  ASSERT_TRUE(handle.ok()) << handle.status();
  EXPECT_EQ(handle->size_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(handle->gpu_uuid, ListGpus()[0].uuid);
  EXPECT_EQ(handle->gpu_uuid.substr(0, 4), "GPU-");
}

std::string HexOf(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte b : bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    hex.push_back(kDigits[std::to_integer<int>(b) >> 4]);
    hex.push_back(kDigits[std::to_integer<int>(b) & 15]);
  }
  return hex;
}

/// The other side of the next test: CUDA opens a handle only in another process.
TEST_F(OnGpu, DISABLED_FillAnImportedBlock) {
  const char* hex = std::getenv("PATCHBAY_TEST_IPC");
  ASSERT_NE(hex, nullptr);
  DeviceBlockHandle handle;
  for (std::size_t i = 0; i < handle.ipc.size(); ++i) {
    handle.ipc[i] = static_cast<std::byte>(std::stoi(std::string(hex + 2 * i, 2), nullptr, 16));
  }
  handle.gpu_uuid = ListGpus()[0].uuid;
  handle.size_bytes = 4096;
  auto block = DeviceBlock::Import(handle);
  ASSERT_TRUE(block.ok()) << block.status();
  auto stream = OwnedGpuStream::Create();
  ASSERT_TRUE(FillDevice(block->d_data(), 0x5A, 4096, stream->get()).ok());
  ASSERT_TRUE(stream->WaitSync().ok());
  if (std::getenv("PATCHBAY_TEST_DIES") != nullptr) ::raise(SIGKILL);
}

/// The command that runs FillAnImportedBlock in a process of its own.
std::string CommandToFill(const DeviceBlockHandle& handle) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  return StrCat("PATCHBAY_TEST_IPC=", HexOf(handle.ipc), " exec '", self,
                "' --gtest_also_run_disabled_tests "
                "--gtest_filter=OnGpu.DISABLED_FillAnImportedBlock");
}

TEST_F(OnGpu, AnotherProcessWritesIntoAnExportedBlock) {
  auto block = DeviceBlock::Allocate(4096);
  ASSERT_TRUE(block.ok());
  const auto handle = block->Export();
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_EQ(std::system(CommandToFill(*handle).c_str()), 0);
  auto stream = OwnedGpuStream::Create();
  std::vector<std::byte> made(4096);
  ASSERT_TRUE(CopyToHost(made, block->d_data(), stream->get()).ok());
  ASSERT_TRUE(stream->WaitSync().ok());
  EXPECT_EQ(made, std::vector<std::byte>(4096, std::byte{0x5A}));
}

TEST_F(OnGpu, AGpuAnswersAndAnUnknownOneDoesNot) {
  EXPECT_TRUE(GpuAnswers(ListGpus()[0].uuid).ok());
  EXPECT_EQ(GpuAnswers("GPU-none").code(), absl::StatusCode::kNotFound);
}

TEST(Gpu, WithoutAListOfItsProcessesTimeDecidesWhoHasLeft) {
  const GpuProcesses unknown = GpuProcesses::Of("GPU-none");
  EXPECT_FALSE(unknown.HasLeft(1, kDriverGraceMs - 1));
  EXPECT_TRUE(unknown.HasLeft(1, kDriverGraceMs));
}

TEST_F(OnGpu, AProcessHasLeftOnceItIsNoLongerListed) {
  const GpuProcesses processes = GpuProcesses::Of(ListGpus()[0].uuid);
  EXPECT_FALSE(processes.HasLeft(::getpid(), 10 * kDriverGraceMs)) << "it uses the GPU";
  EXPECT_TRUE(processes.HasLeft(1, 0)) << "it never did";
}

TEST_F(OnGpu, AKilledProcessIsListedForAWhileAndThenHasLeft) {
  if (std::getenv("PATCHBAY_EMULATED_GPUS") == nullptr) GTEST_SKIP() << "a real GPU is here";
  const GpuProcesses processes = GpuProcesses::Of(ListGpus()[0].uuid);
  bool was_listed = false;
  for (int i = 0; i < 3; ++i) {
    auto block = DeviceBlock::Allocate(4096);
    ASSERT_TRUE(block.ok());
    const auto handle = block->Export();
    ASSERT_TRUE(handle.ok()) << handle.status();
    const std::string command = StrCat("export PATCHBAY_TEST_DIES=1; ", CommandToFill(*handle));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    was_listed = was_listed || !processes.HasLeft(child, 10 * kDriverGraceMs);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!processes.HasLeft(child, 0)) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it never leaves";
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(was_listed) << "a death alone is taken for the end of its writes";
}

TEST_F(OnGpu, TooMuchMemoryIsResourceExhausted) {
  EXPECT_EQ(DeviceBlock::Allocate(std::uint64_t{1} << 50).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace patchbay::memory
