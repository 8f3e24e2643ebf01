// Open descriptors, kept and bounded: the least recently used one is closed first.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/zarr/byte_store.h"

namespace patchbay::zarr {

/// A regular file that stays open as long as somebody holds it.
class CachedFile final : public StoredBytes {
 public:
  CachedFile(UniqueFd fd, std::uint64_t size_bytes, std::string stamp)
      : fd_(std::move(fd)), size_bytes_(size_bytes), stamp_(std::move(stamp)) {}

  std::uint64_t size_bytes() const override { return size_bytes_; }
  std::string_view stamp() const override { return stamp_; }
  Status Read(std::uint64_t offset, std::span<std::byte> out,
              std::string_view name) const override {
    return ReadAt(fd_.get(), offset, out, name);
  }

 private:
  const UniqueFd fd_;
  const std::uint64_t size_bytes_;
  const std::string stamp_;
};

/// Thread-safe. Shared by all stores of a process, so that it has one bound for its descriptors.
class FileCache {
 public:
  /// Larger `max_open` means fewer files opened again, and more descriptors.
  explicit FileCache(std::size_t max_open) : max_open_(max_open) {}

  /// Names the files of one owner: what one opened is never given to another, which may have
  /// opened the same path before its content was replaced.
  std::uint64_t AddOwner();
  /// The open file, or null when there is none of that name. Anything but a regular file is
  /// DataLoss. When the process runs out of descriptors the cache lets go of its own and tries
  /// again.
  StatusOr<std::shared_ptr<const StoredBytes>> Open(std::uint64_t owner, const std::string& path);
  /// Closes what only the cache holds of this owner's files.
  void Forget(std::uint64_t owner);

 private:
  struct Entry {
    std::uint64_t owner = 0;
    std::string path;
    std::shared_ptr<const StoredBytes> file;
  };
  using Recent = std::list<Entry>;

  static std::string KeyOf(std::uint64_t owner, const std::string& path);

  const std::size_t max_open_;
  std::mutex mu_;
  std::uint64_t owners_ = 0;                                  // guarded by mu_
  Recent recent_;                                             // guarded by mu_, newest first
  std::unordered_map<std::string, Recent::iterator> by_key_;  // guarded by mu_
};

}  // namespace patchbay::zarr
