// Files and descriptors: owned, checked, and durable where a function says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void Close();

 private:
  int fd_ = -1;
};

// Functions that take a path stay in the folders that `allowed` names (folders.h): PermissionDenied
// outside them and where a link leads out of them.

/// Opens with O_CLOEXEC added. `mode` is used with O_CREAT.
StatusOr<UniqueFd> OpenFile(const Folders& allowed, const std::string& path, int flags,
                            unsigned mode = 0644);

/// Exactly out.size() bytes at `offset`; DataLoss when the file ends before.
Status ReadAt(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view name);

/// All bytes at `offset`, whatever the kernel takes at once.
Status WriteAt(int fd, std::uint64_t offset, std::span<const std::byte> bytes,
               std::string_view name);

/// The whole file; InvalidArgument when it is larger than max_bytes, FailedPrecondition for a
/// pipe.
StatusOr<std::string> ReadFile(const Folders& allowed, const std::string& path,
                               std::size_t max_bytes);

/// Writes a temporary file next to `path`, fsync, rename, fsync of the folder: after success the
/// content survives a power cut, after failure `path` is as it was.
Status WriteFileDurably(const Folders& allowed, const std::string& path,
                        std::span<const std::byte> bytes, unsigned mode = 0644);

/// The same without fsync: readers of `path` see either the former content or all of the new one;
/// after a power cut possibly neither.
Status ReplaceFile(const Folders& allowed, const std::string& path,
                   std::span<const std::byte> bytes, unsigned mode = 0644);

/// fsync of a folder, so that the names in it are durable.
Status SyncDirectory(const Folders& allowed, const std::string& path);

/// mkdir -p; new folders get `mode`.
Status MakeDirectories(const Folders& allowed, const std::string& path, unsigned mode = 0755);

/// Bytes that may still be written to the file system that holds `path`.
StatusOr<std::uint64_t> FreeBytes(const Folders& allowed, const std::string& path);

}  // namespace patchbay
