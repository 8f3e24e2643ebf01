#include "runtime/os/usable_cores.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <sched.h>

#include "runtime/os/available_memory.h"

namespace patchbay {
namespace {

constexpr int kCpusMax = 8192;

/// A file of /proc; "" when it cannot be read.
std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::int64_t UsableCores(const std::string& root) {
  cpu_set_t* set = CPU_ALLOC(kCpusMax);
  const std::size_t size = CPU_ALLOC_SIZE(kCpusMax);
  std::int64_t cores = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 1;
  CPU_FREE(set);
  const std::string group = MemoryGroupsIn(TextOf(root + "/proc/self/cgroup")).v2;
  for (const GroupMount& mount : MemoryGroupMountsIn(TextOf(root + "/proc/self/mountinfo"))) {
    if (!mount.is_v2) continue;
    for (const std::string& folder : GroupFolders(mount, group)) {
      std::ifstream quota_file(root + folder + "/cpu.max");  // "max 100000" without a quota
      double quota = 0, period = 0;
      if (quota_file >> quota >> period && quota > 0 && period > 0) {
        cores = std::min(cores, static_cast<std::int64_t>((quota + period - 1) / period));
      }
    }
  }
  return std::max<std::int64_t>(cores, 1);
}

}  // namespace patchbay
