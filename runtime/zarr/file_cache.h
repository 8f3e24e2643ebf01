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

namespace patchbay::zarr {

/// A file that stays open for as long as somebody holds it.
struct CachedFile {
  UniqueFd fd;
  std::uint64_t size_bytes = 0;
};

/// Thread-safe. May be shared by many arrays, so that a process has one bound for all of them.
class FileCache {
 public:
  explicit FileCache(std::size_t max_open) : max_open_(max_open) {}

  /// The open file, or null when there is none of that name. Anything but a regular file is an
  /// error. When the process runs out of descriptors the cache lets go of its own and tries again.
  StatusOr<std::shared_ptr<const CachedFile>> Open(const std::string& path);

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const CachedFile>>;

  const std::size_t max_open_;
  std::mutex mu_;
  std::list<Entry> recent_;  // guarded by mu_, newest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_path_;  // guarded by mu_
};

}  // namespace patchbay::zarr
