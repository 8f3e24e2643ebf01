// Proof that a process has ended: a descriptor bound to that process, never to its number.
#pragma once

#include <utility>

#include <sys/types.h>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::data {

/// The kernel's proof of a process's end. Tests choose the second.
enum class ExitProof : std::uint8_t {
  kPidfd,   ///< a descriptor that becomes readable; Linux 5.3
  kFolder,  ///< the process's folder in /proc, which answers no more once it was reaped: is asked
};

/// Move-only. An empty one has no process.
class ExitWatch {
 public:
  ExitWatch() = default;
  /// Takes a pidfd that the kernel gave.
  explicit ExitWatch(UniqueFd pidfd) : fd_(std::move(pidfd)) {}

  /// NotFound when no such process exists. Falls back to kFolder where the kernel has no pidfd.
  static StatusOr<ExitWatch> Of(pid_t pid, ExitProof preferred = ExitProof::kPidfd);

  bool valid() const { return fd_.valid(); }
  ExitProof proof() const { return proof_; }
  /// kPidfd: readable once the process has ended. kFolder: nothing to wait on, ask Ended.
  int fd() const { return fd_.get(); }
  /// True once no thread of the process can run again. A zombie counts as ended for kPidfd only.
  bool Ended() const;

 private:
  UniqueFd fd_;
  ExitProof proof_ = ExitProof::kPidfd;
};

}  // namespace patchbay::data
