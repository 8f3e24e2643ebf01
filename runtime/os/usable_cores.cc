#include "runtime/os/usable_cores.h"

#include <algorithm>
#include <fstream>

#include <sched.h>

namespace patchbay {
namespace {

constexpr int kCpusMax = 8192;

}  // namespace

std::int64_t UsableCores() {
  cpu_set_t* set = CPU_ALLOC(kCpusMax);
  const std::size_t size = CPU_ALLOC_SIZE(kCpusMax);
  std::int64_t cores = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 1;
  CPU_FREE(set);
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (quota_file >> quota >> period && quota > 0 && period > 0) {
    cores = std::min(cores, static_cast<std::int64_t>((quota + period - 1) / period));
  }
  return std::max<std::int64_t>(cores, 1);
}

}  // namespace patchbay
