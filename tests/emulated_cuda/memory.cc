#include "tests/emulated_cuda/memory.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/emulated_cuda/devices.h"
#include "tests/emulated_cuda/emulation.h"

namespace patchbay::emulated_cuda {
namespace {

constexpr std::size_t kPage = 4'096, kGuard = 16 * kPage;
constexpr int kUsers = 64;

/// The importers' view of a block: the first page of its memfd.
struct Header {
  bool freed = false;   ///< the exporter has called cudaFree
  pid_t users[kUsers];  ///< processes that opened it, the exporter's NVML lists them
};

/// Mapped: guard pages, [margin, data, margin], guard pages. The data ends as close to the guard
/// pages as its alignment lets it.
struct Block {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::byte* pages = nullptr;
  std::size_t pages_bytes = 0;
  int owner = 0;         ///< device
  unsigned devices = 0;  ///< bits of those that may touch it
  int fd = -1;
  Header* header = nullptr;
  int imports = 0;  ///< times that this process has it open; 0 for its own
  std::uint64_t inode = 0;
  unsigned char margin = 0;
  bool exported = false;
};

struct Handle {  // the content of a cudaIpcMemHandle_t
  std::uint32_t magic;
  std::int32_t pid, fd, owner;
  std::uint64_t inode, offset, size;
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));
constexpr std::uint32_t kMagic = 0x50424950;

struct Memory {
  std::map<std::uintptr_t, std::unique_ptr<Block>> blocks;  ///< by the first byte of their pages
  std::map<std::uintptr_t, std::size_t> pinned;
  std::array<std::size_t, kMaxDevices> used{};
  std::array<int, kMaxDevices> open{};
};
Memory& TheMemory() {
  static auto* memory = new Memory;
  return *memory;
}

std::uintptr_t AddressOf(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// The block whose pages or guard pages hold the address.
Block* BlockNear(std::uintptr_t address) {
  for (const auto& [begin, block] : TheMemory().blocks) {
    if (address >= begin - kGuard && address < begin + block->pages_bytes + kGuard) {
      return block.get();
    }
  }
  return nullptr;
}

Block* BlockFrom(const void* d_memory) {
  Block* block = BlockNear(AddressOf(d_memory));
  return block != nullptr && block->data == d_memory ? block : nullptr;
}

bool IsOpen(const Block& block) {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (TheMemory().open[static_cast<std::size_t>(device)] > 0 &&
        (block.devices >> device & 1) != 0) {
      return block.imports == 0 || !block.header->freed;
    }
  }
  return false;
}

void Protect(const Block& block) {
  (void)::mprotect(block.pages, block.pages_bytes,
                   IsOpen(block) ? PROT_READ | PROT_WRITE : PROT_NONE);
}

std::string Text(const Block& block, std::uintptr_t address) {
  const auto begin = AddressOf(block.data);
  const std::string of = " a block of " + std::to_string(block.size) + " bytes on device " +
                         std::to_string(block.owner);
  if (address < begin) return std::to_string(begin - address) + " bytes before" + of;
  if (address >= begin + block.size) {
    return std::to_string(address - begin - block.size) + " bytes past" + of;
  }
  return "byte " + std::to_string(address - begin) + " of" + of;
}

struct sigaction earlier_segv, earlier_bus, earlier_ill;

void OnSignal(int signal, siginfo_t* info, void* context) {
  const auto address = AddressOf(info->si_addr);
  const bool in_kernel = !Running().empty();
  if (signal == SIGILL && in_kernel) Report("a kernel makes a misaligned access");
  if (const Block* block = BlockNear(address); block != nullptr && signal != SIGILL) {
    if (block->imports > 0 && block->header->freed) {
      Report("access to " + Text(*block, address) + ", which its exporter has freed");
    }
    Report((in_kernel ? "a kernel's access to " : "the host touches device memory: ") +
           Text(*block, address));
  }
  if (in_kernel) Report("a kernel's access to no memory of the device's");
  struct sigaction& earlier = signal == SIGSEGV  ? earlier_segv
                              : signal == SIGBUS ? earlier_bus
                                                 : earlier_ill;
  if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != nullptr) {
    earlier.sa_sigaction(signal, info, context);
    return;
  }
  ::sigaction(signal, &earlier, nullptr);  // the fault happens again
}

Block* Place(Block block, std::size_t offset) {
  const std::size_t reserved = block.pages_bytes + 2 * kGuard;
  void* range =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  block.pages = static_cast<std::byte*>(range) + kGuard;
  void* pages = ::mmap(block.pages, block.pages_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, block.fd, kPage);
  void* header = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, block.fd, 0);
  if (pages == MAP_FAILED || header == MAP_FAILED) {
    ::munmap(range, reserved);
    return nullptr;
  }
  block.header = static_cast<Header*>(header);
  block.data = block.pages + offset;
  auto& placed = TheMemory().blocks[AddressOf(block.pages)];
  placed = std::make_unique<Block>(block);
  return placed.get();
}

void Forget(Block& block) {
  ::munmap(block.header, kPage);
  ::munmap(block.pages - kGuard, block.pages_bytes + 2 * kGuard);
  ::close(block.fd);
  TheMemory().blocks.erase(AddressOf(block.pages));
}

bool MarginsWhole(const Block& block) {
  const auto whole = [&](const std::byte* from, const std::byte* to) {
    return std::all_of(from, to, [&](std::byte b) { return b == std::byte{block.margin}; });
  };
  return whole(block.pages, block.data) &&
         whole(block.data + block.size, block.pages + block.pages_bytes);
}

/// The margins' byte everywhere; blocks so large that tests only take room with them keep zeros in
/// their middle, pages that the machine then need not have.
void Fill(const Block& block) {
  constexpr std::size_t kFilledAtEachEnd = std::size_t{128} << 20;
  const std::size_t head = std::min(block.pages_bytes, kFilledAtEachEnd);
  const std::size_t tail = std::min(block.pages_bytes - head, kFilledAtEachEnd);
  std::memset(block.pages, block.margin, head);
  std::memset(block.pages + block.pages_bytes - tail, block.margin, tail);
}

}  // namespace

void InstallSignals() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    ::sigaction(SIGSEGV, &action, &earlier_segv);
    ::sigaction(SIGBUS, &action, &earlier_bus);
    ::sigaction(SIGILL, &action, &earlier_ill);
    return true;
  }();
  (void)installed;
}

OpenMemory::OpenMemory(int device) : device_(device) {
  if (TheMemory().open[static_cast<std::size_t>(device_)]++ > 0) return;
  for (const auto& [begin, block] : TheMemory().blocks) {
    if ((block->devices >> device_ & 1) != 0) Protect(*block);
  }
}

OpenMemory::~OpenMemory() {
  if (--TheMemory().open[static_cast<std::size_t>(device_)] > 0) return;
  for (const auto& [begin, block] : TheMemory().blocks) {
    if ((block->devices >> device_ & 1) != 0) Protect(*block);
  }
}

cudaError_t Allocate(std::size_t size_bytes, int device, void** d_memory) {
  Memory& memory = TheMemory();
  std::size_t& used = memory.used[static_cast<std::size_t>(device)];
  static std::uint64_t allocations = 0;
  if (size_bytes > TheSettings().memory_bytes - std::min(used, TheSettings().memory_bytes) ||
      allocations++ >= TheSettings().out_of_memory_after) {
    return cudaErrorMemoryAllocation;
  }
  InstallSignals();
  Block block;
  block.size = size_bytes;
  block.owner = device;
  block.devices = 1u << device;
  const std::size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  block.pages_bytes = (rounded + kPage - 1) / kPage * kPage;
  block.fd = ::memfd_create("emulated-gpu", MFD_CLOEXEC);
  struct stat status {};
  if (block.fd < 0 || ::ftruncate(block.fd, static_cast<off_t>(block.pages_bytes + kPage)) != 0 ||
      ::fstat(block.fd, &status) != 0) {
    if (block.fd >= 0) ::close(block.fd);
    return cudaErrorMemoryAllocation;
  }
  block.inode = status.st_ino;
  block.margin = static_cast<unsigned char>(Roll() % 255 + 1);
  Block* placed = Place(block, block.pages_bytes - rounded);
  if (placed == nullptr) {
    ::close(block.fd);
    return cudaErrorMemoryAllocation;
  }
  Fill(*placed);
  Protect(*placed);
  used += size_bytes;
  *d_memory = placed->data;
  return cudaSuccess;
}

cudaError_t Free(void* d_memory) {
  Block* block = BlockFrom(d_memory);
  if (block == nullptr || block->imports > 0) return cudaErrorInvalidValue;
  {
    const OpenMemory open(block->owner);
    if (!MarginsWhole(*block)) {
      Report("bytes were written beside a block of " + std::to_string(block->size) +
             " bytes on device " + std::to_string(block->owner));
    }
  }
  block->header->freed = true;
  TheMemory().used[static_cast<std::size_t>(block->owner)] -= block->size;
  Forget(*block);
  return cudaSuccess;
}

std::size_t AllocatedBytes(int device) {
  return TheMemory().used[static_cast<std::size_t>(device)];
}

cudaError_t Export(void* d_memory, cudaIpcMemHandle_t& handle) {
  Block* block = BlockFrom(d_memory);
  if (block == nullptr || block->imports > 0) return cudaErrorInvalidValue;
  const Handle made = {kMagic,       ::getpid(),
                       block->fd,    block->owner,
                       block->inode, static_cast<std::uint64_t>(block->data - block->pages),
                       block->size};
  std::memset(&handle, 0, sizeof(handle));
  std::memcpy(&handle, &made, sizeof(made));
  block->exported = true;
  return cudaSuccess;
}

cudaError_t Import(const cudaIpcMemHandle_t& handle, int device, void** d_memory) {
  Handle wanted;
  std::memcpy(&wanted, &handle, sizeof(wanted));
  if (wanted.magic != kMagic || wanted.owner < 0 || wanted.owner >= TheSettings().devices) {
    return cudaErrorInvalidValue;
  }
  if (wanted.pid == ::getpid()) return cudaErrorDeviceUninitialized;  // as CUDA in one process
  for (const auto& [begin, block] : TheMemory().blocks) {
    if (block->imports > 0 && block->inode == wanted.inode) {
      ++block->imports;
      *d_memory = block->data;
      return cudaSuccess;
    }
  }
  const std::string path =
      "/proc/" + std::to_string(wanted.pid) + "/fd/" + std::to_string(wanted.fd);
  Block block;
  block.fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (block.fd < 0) return cudaErrorInvalidResourceHandle;
  InstallSignals();
  block.size = wanted.size;
  block.owner = wanted.owner;
  block.devices = 1u << wanted.owner | 1u << device;
  block.imports = 1;
  block.inode = wanted.inode;
  struct stat status {};
  if (::fstat(block.fd, &status) != 0 || status.st_ino != wanted.inode ||
      static_cast<std::uint64_t>(status.st_size) < kPage + wanted.offset + wanted.size) {
    ::close(block.fd);
    return cudaErrorInvalidResourceHandle;
  }
  block.pages_bytes = static_cast<std::size_t>(status.st_size) - kPage;
  Block* placed = Place(block, wanted.offset);
  if (placed == nullptr || placed->header->freed) {
    if (placed != nullptr) Forget(*placed);
    return cudaErrorMapBufferObjectFailed;
  }
  Protect(*placed);
  *d_memory = placed->data;
  for (pid_t& user : placed->header->users) {
    pid_t none = 0;
    if (__atomic_compare_exchange_n(&user, &none, ::getpid(), false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      break;
    }
  }
  return cudaSuccess;
}

cudaError_t Unmap(void* d_memory) {
  Block* block = BlockFrom(d_memory);
  if (block == nullptr || block->imports == 0) return cudaErrorInvalidValue;
  if (--block->imports == 0) Forget(*block);
  return cudaSuccess;
}

int DeviceOf(const void* memory, std::size_t size_bytes) {
  const auto address = AddressOf(memory);
  const Block* block = BlockNear(address);
  if (block == nullptr) {
    const Block* end = size_bytes == 0 ? nullptr : BlockNear(address + size_bytes - 1);
    return end == nullptr ? kHostMemory : kNoBlock;
  }
  const auto begin = AddressOf(block->data);
  const bool inside = address >= begin && address <= begin + block->size &&
                      size_bytes <= begin + block->size - address;
  return inside ? block->owner : kNoBlock;
}

int OwnerOf(const void* d_memory) {
  const Block* block = BlockFrom(d_memory);
  return block == nullptr ? kNoBlock : block->owner;
}

/// A zombie is dead: its memory is gone.
bool Alive(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const bool alive = fd >= 0 && ::read(fd, &byte, 1) == 1;
  if (fd >= 0) ::close(fd);
  return alive;
}

std::vector<pid_t> ProcessesOf(int device) {
  // An ended process stays listed for a while, as if the driver were still closing its context.
  static auto* left_at = new std::map<pid_t, std::int64_t>;
  timespec clock{};
  ::clock_gettime(CLOCK_MONOTONIC, &clock);
  const std::int64_t now_ms = clock.tv_sec * 1'000 + clock.tv_nsec / 1'000'000;
  std::vector<pid_t> listed = {::getpid()};
  for (const auto& [begin, block] : TheMemory().blocks) {
    if (block->owner != device || block->imports > 0) continue;
    for (const pid_t user : block->header->users) {
      if (user == 0 || std::count(listed.begin(), listed.end(), user) != 0) continue;
      if (!Alive(user)) {
        left_at->try_emplace(user, now_ms + static_cast<std::int64_t>(Roll() % 300));
        if (now_ms >= left_at->at(user)) continue;
      }
      listed.push_back(user);
    }
  }
  return listed;
}

cudaError_t Pin(void* memory, std::size_t size_bytes) {
  const auto begin = AddressOf(memory);
  for (const auto& [at, size] : TheMemory().pinned) {
    if (begin < at + size && at < begin + size_bytes) return cudaErrorHostMemoryAlreadyRegistered;
  }
  TheMemory().pinned[begin] = size_bytes;
  return cudaSuccess;
}

cudaError_t Unpin(void* memory) {
  return TheMemory().pinned.erase(AddressOf(memory)) == 1 ? cudaSuccess
                                                          : cudaErrorHostMemoryNotRegistered;
}

std::size_t PinnedBytes(const void* memory) {
  const auto it = TheMemory().pinned.find(AddressOf(memory));
  return it == TheMemory().pinned.end() ? 0 : it->second;
}

bool IsPinned(const void* memory, std::size_t size_bytes) {
  const auto begin = AddressOf(memory);
  auto it = TheMemory().pinned.upper_bound(begin);
  if (it == TheMemory().pinned.begin()) return false;
  --it;
  return begin + size_bytes <= it->first + it->second;
}

}  // namespace patchbay::emulated_cuda
