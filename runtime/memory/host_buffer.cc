#include "runtime/memory/host_buffer.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/memory/memfd_block.h"

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
    return absl::InvalidArgumentError(
        StrCat("allocate host buffer: ", size_bytes, " bytes: not in 1..", kMaxBlockBytes));
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

}  // namespace patchbay::memory
