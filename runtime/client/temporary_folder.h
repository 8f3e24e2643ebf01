// The private folder of an embedded cluster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::client {

/// Removes a folder with everything in it; tries again while processes that are being killed still
/// write.
void RemoveFolder(const std::string& path);

/// A folder that only this user can enter, in use as long as a process holds its lock.
class TemporaryFolder {
 public:
  /// Creates one below `parent`, after removing folders there that no process holds any more (after
  /// a crash of the machine, or when all processes were killed at once).
  static StatusOr<TemporaryFolder> Create(const std::string& parent);
  TemporaryFolder(TemporaryFolder&&) = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }
  /// A lock of every process that has this descriptor, or a copy of it.
  int lock_fd() const { return lock_.get(); }
  void Remove() const { RemoveFolder(path_); }

 private:
  TemporaryFolder(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

/// Names of this user's folders below `parent` that some process holds: in each a cluster runs,
/// starts or ends. A folder that cannot be listed has none.
std::vector<std::string> FoldersInUse(const std::string& parent);

}  // namespace patchbay::client
