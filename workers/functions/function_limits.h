// The limits of a process that runs the user's own functions, as the kernel enforces them: a filter
// of system calls (seccomp) and limits of resources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linux/filter.h>
#include <sys/types.h>

namespace patchbay::workers {

/// Bytes that the process may write to its standard error, the only file it may write to.
inline constexpr std::uint64_t kMaxSaidBytes = 64 << 10;

/// Refuses sockets and every other way to another process, new processes, memory that RLIMIT_DATA
/// does not count, files opened for writing, changes of names, and changes of these limits.
/// Everything else is allowed: reading files, threads, private memory.
class SyscallFilter {
 public:
  /// The one program that may be executed is the one whose path lies at `program`.
  static SyscallFilter For(const char* program);

  /// In the child, before it executes the program; only async-signal-safe calls. False, with errno,
  /// when the kernel refuses.
  bool Install();

 private:
  std::vector<sock_filter> code_;
  std::vector<std::size_t> own_pid_;  ///< instructions that compare with the process's id
};

/// Limits the private memory of this process, what it writes, and its cores. Only async-signal-safe
/// calls. False, with errno, when the kernel refuses.
bool LimitResources(std::uint64_t memory_bytes);

}  // namespace patchbay::workers
