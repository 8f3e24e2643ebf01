#include "runtime/memory/host_buffer.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"

namespace patchbay::memory {
namespace {

constexpr std::uint64_t kHugePageBytes = 2u << 20;

void Touch(std::byte* data, std::uint64_t size_bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data, static_cast<std::size_t>(size_bytes), MADV_POPULATE_WRITE) == 0) return;
#endif
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t at = 0; at < size_bytes; at += page) {
    *reinterpret_cast<volatile std::byte*>(data + at) = std::byte{0};
  }
}

/// At a time. Larger means fewer calls and a longer wait for the thread to stop.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
/// Bytes mapped before the memory is used: page faults during the work would cost the work as much
/// time.
constexpr std::size_t kFirstBytes = std::size_t{1} << 30;

void Map(std::stop_token stop, std::span<std::byte> bytes) {
  while (!bytes.empty() && !stop.stop_requested()) {
    const std::size_t size = std::min(kPieceBytes, bytes.size());
    if (madvise(bytes.data(), size, MADV_POPULATE_WRITE) != 0) return;
    bytes = bytes.subspan(size);
  }
}

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::uint64_t kReservedAtOnce = std::uint64_t{256} << 20;
/// Smaller blocks are not looked for: reading the limits takes longer than taking the pages.
constexpr std::uint64_t kLookedFor = std::uint64_t{8} << 20;

Status CheckSize(std::uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > kMaxBlockBytes) {
    return InvalidArgument("map shared block: ", size_bytes, " bytes: not in 1..", kMaxBlockBytes);
  }
  return absl::OkStatus();
}

/// At a multiple of a huge page, so that huge pages of the block are mapped whole.
StatusOr<std::byte*> MapShared(int fd, std::uint64_t size_bytes) {
  const auto failed = [size_bytes] {
    return FromErrno("map shared block", StrCat(size_bytes, " bytes"), errno);
  };
  const auto size = static_cast<std::size_t>(size_bytes), room_size = size + kHugePageBytes;
  void* const room =
      ::mmap(nullptr, room_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return failed();
  void* place = room;
  std::size_t left = room_size;
  std::align(kHugePageBytes, size, place, left);
  void* const address = ::mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (address == MAP_FAILED) {
    const Status status = failed();
    ::munmap(room, room_size);
    return status;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* const end = static_cast<std::byte*>(address) + (size + page - 1) / page * page;
  auto* const begin = static_cast<std::byte*>(room);
  if (address != room) ::munmap(room, room_size - left);
  if (end != begin + room_size) ::munmap(end, static_cast<std::size_t>(begin + room_size - end));
  return static_cast<std::byte*>(address);
}

/// Makes whole huge pages of the bytes of a new block, where Linux (6.1 on) has them: a lack is no
/// error, and the pages are made one by one.
void MakeHugePages(int fd, std::span<std::byte> bytes, std::uint64_t offset) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the C library of Debian 12 lacks
  const std::size_t size = bytes.size() / kHugePageBytes * kHugePageBytes;
  // The kernel needs one page of each.
  for (std::size_t at = 0; at < size; at += kHugePageBytes) {
    if (::fallocate(fd, 0, static_cast<off_t>(offset + at), 1) != 0) return;
    *reinterpret_cast<volatile std::byte*>(&bytes[at]) = std::byte{0};
  }
  if (size != 0) (void)::madvise(bytes.data(), size, kCollapse);
}

/// Allocates the pages piece by piece, and checks before each that the rest is available: beyond a
/// limit the kernel does not refuse pages but kills the process.
Status Reserve(int fd, std::byte* data, std::uint64_t size_bytes) {
  constexpr const char* kDoing = "reserve shared block";
  for (std::uint64_t at = 0; at < size_bytes; at += kReservedAtOnce) {
    const std::uint64_t left = size_bytes - at, piece = std::min(left, kReservedAtOnce);
    if (size_bytes >= kLookedFor) {
      PB_RETURN_IF_ERROR(CheckMemoryFits(kDoing, left, AvailableMemory()));
    }
    MakeHugePages(fd, {data + at, static_cast<std::size_t>(piece)}, at);
    if (::fallocate(fd, 0, static_cast<off_t>(at), static_cast<off_t>(piece)) != 0) {
      return FromErrno(kDoing, StrCat(size_bytes, " bytes"), errno);
    }
  }
  return absl::OkStatus();
}

/// Reserving reports a lack of pages as an error; populating maps them.
Status Populate(int fd, std::byte* data, std::uint64_t size_bytes) {
  PB_RETURN_IF_ERROR(Reserve(fd, data, size_bytes));
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data, static_cast<std::size_t>(size_bytes), MADV_POPULATE_WRITE) == 0) {
    return absl::OkStatus();
  }
#endif
  // Kernels before 5.14: the pages exist, so touching them cannot fail.
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t at = 0; at < size_bytes; at += page) {
    *reinterpret_cast<volatile std::byte*>(data + at) = std::byte{0};
  }
  return absl::OkStatus();
}

}  // namespace

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_bytes_));
}

StatusOr<HostBuffer> HostBuffer::Allocate(std::uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > kMaxBlockBytes) {
    return InvalidArgument("allocate host buffer: ", size_bytes, " bytes: not in 1..",
                           kMaxBlockBytes);
  }
  void* address = ::mmap(nullptr, static_cast<std::size_t>(size_bytes), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return FromErrno("allocate host buffer", StrCat(size_bytes, " bytes"), errno);
  }
  HostBuffer buffer;
  buffer.data_ = static_cast<std::byte*>(address);
  buffer.size_bytes_ = size_bytes;
  if (size_bytes >= kHugePageBytes) {
    (void)::madvise(address, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);
  }
  Touch(buffer.data_, size_bytes);
  return buffer;
}

Prefault::Prefault(std::span<std::byte> bytes) {
  const std::size_t first = std::min(kFirstBytes, bytes.size());
  Map({}, bytes.first(first));
  if (first == bytes.size()) return;
  try {
    thread_ = std::jthread(Map, bytes.subspan(first));
  } catch (const std::system_error&) {
    // No thread is to be had: the pages are mapped on first use.
  }
}

MemfdBlock::MemfdBlock(MemfdBlock&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MemfdBlock& MemfdBlock::operator=(MemfdBlock&& other) noexcept {
  if (this != &other) {
    Release();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

MemfdBlock::~MemfdBlock() { Release(); }

void MemfdBlock::Release() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_bytes_));
  data_ = nullptr;
  size_bytes_ = 0;
  fd_.Close();
}

StatusOr<MemfdBlock> MemfdBlock::Create(std::string_view label, std::uint64_t size_bytes) {
  PB_RETURN_IF_ERROR(CheckSize(size_bytes));
  MemfdBlock block;
  block.fd_ = UniqueFd(::memfd_create(std::string(label).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!block.fd_.valid()) return FromErrno("create shared block", label, errno);
  if (::ftruncate(block.fd_.get(), static_cast<off_t>(size_bytes)) != 0) {
    return FromErrno("size shared block", StrCat(size_bytes, " bytes"), errno);
  }
  if (::fcntl(block.fd_.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    return FromErrno("seal shared block", label, errno);
  }
  PB_ASSIGN_OR_RETURN(block.data_, MapShared(block.fd_.get(), size_bytes));
  block.size_bytes_ = size_bytes;
  // Advice only: shmem huge pages depend on the kernel's setting.
  (void)::madvise(block.data_, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);
  PB_RETURN_IF_ERROR(Populate(block.fd_.get(), block.data_, size_bytes));
  return block;
}

StatusOr<MemfdBlock> MemfdBlock::Map(UniqueFd fd, std::uint64_t size_bytes) {
  PB_RETURN_IF_ERROR(CheckSize(size_bytes));
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) return InvalidArgument("map shared block: descriptor: not a memfd");
  if ((seals & kSizeSeals) != kSizeSeals) {
    return InvalidArgument("map shared block: descriptor: its size is not sealed");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return FromErrno("inspect shared block", "descriptor", errno);
  }
  if (static_cast<std::uint64_t>(status.st_size) != size_bytes) {
    return InvalidArgument("map shared block: descriptor: ", status.st_size, " bytes, expected ",
                           size_bytes);
  }
  MemfdBlock block;
  PB_ASSIGN_OR_RETURN(block.data_, MapShared(fd.get(), size_bytes));
  block.size_bytes_ = size_bytes;
  block.fd_ = std::move(fd);
  return block;
}

}  // namespace patchbay::memory
