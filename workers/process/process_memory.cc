#include "workers/process/process_memory.h"

#include <cerrno>

#include <malloc.h>
#include <sys/resource.h>

namespace patchbay::workers {

Status LimitMemory(std::uint64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  const rlimit limit{size_bytes, size_bytes};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return FromErrno("limit memory", "RLIMIT_DATA", errno);
  return absl::OkStatus();
}

std::uint64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void KeepFreedMemory() {
  constexpr int kLargestHeapBlock = 32 << 20;  // glibc's own limit for M_MMAP_THRESHOLD
  constexpr int kNeverTrim = -1;
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
  mallopt(M_ARENA_MAX, 1);  // other arenas give their heaps back when they are empty
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace patchbay::workers
