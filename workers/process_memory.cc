#include "workers/process_memory.h"

#include <cerrno>

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

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace patchbay::workers
