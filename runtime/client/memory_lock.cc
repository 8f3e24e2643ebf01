#include "runtime/client/memory_lock.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

bool MayPassTheLimit() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

}  // namespace

std::optional<std::uint64_t> MemoryLockLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (MayPassTheLimit()) return {};
  return limit.rlim_cur;
}

std::string MemoryLockAdvice(std::uint64_t ring_bytes, std::optional<std::uint64_t> limit) {
  if (!limit || *limit >= ring_bytes) return "";
  return StrCat("data policy rdma: the ring of ", HumanBytes(ring_bytes),
                " is registered with the device, and this process may lock ", HumanBytes(*limit),
                ": raise that (ulimit -l, or LimitMEMLOCK=), or lower batch.prefetch");
}

}  // namespace patchbay::client
