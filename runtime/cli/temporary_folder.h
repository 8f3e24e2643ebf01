// The private folder of an embedded cluster: gone when its owner is.
#pragma once

#include <string>
#include <utility>

#include <sys/types.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

namespace patchbay::cli {

/// A folder that only this user can enter, removed with everything in it when the object or the
/// process that made it ends, however it ends: a small process of its own waits for that.
class TemporaryFolder {
 public:
  /// Makes one below `parent`, after removing what earlier ones left there (when the machine went
  /// down). Call it before the process has a second thread: it forks.
  static StatusOr<TemporaryFolder> Create(const std::string& parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")),
        lock_(std::move(other.lock_)),
        alive_(std::move(other.alive_)),
        janitor_(std::exchange(other.janitor_, -1)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  Status StartJanitor();

  std::string path_;
  UniqueFd lock_;   ///< held: this folder is in use
  UniqueFd alive_;  ///< the janitor acts when this end is closed
  pid_t janitor_ = -1;
};

}  // namespace patchbay::cli
