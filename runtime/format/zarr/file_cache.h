// Open descriptors, kept and bounded: the least recently used one is closed first. Bytes are given
// out only as long as their file is what it was when it was opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/os/file.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// A regular file that stays open as long as somebody holds it. Every read looks at its identity
/// after the bytes were read: one fstat.
class CachedFile final : public StoredBytes {
 public:
  CachedFile(UniqueFd fd, const FileIdentity& identity);

  std::uint64_t size_bytes() const override { return identity_.size_bytes; }
  std::string_view stamp() const override { return stamp_; }
  Status Read(std::uint64_t offset, std::span<std::byte> out, std::string_view name) const override;
  /// When it was opened.
  const FileIdentity& identity() const { return identity_; }
  /// Whether a read found it changed.
  bool changed() const { return changed_.load(std::memory_order_relaxed); }

 private:
  const UniqueFd fd_;
  const FileIdentity identity_;
  const std::string stamp_;
  mutable std::atomic<bool> changed_ = false;
};

/// Why a file is no longer the one that was opened; `now`: what lies there, if anything.
std::string HowItChanged(const FileIdentity& opened, const std::optional<FileIdentity>& now);

/// Thread-safe. Shared by all stores of a process, so that it has one bound for its descriptors.
class FileCache {
 public:
  /// A file that another was put in the place of is noticed after this, by its path; one that is
  /// written, by every read.
  static constexpr TimeMs kPathCheckMs = 1'000;

  /// Larger `max_open` means fewer files opened again, and more descriptors. `clock` must outlive
  /// the cache.
  explicit FileCache(std::size_t max_open, const Clock& clock = SteadyTime())
      : max_open_(max_open), clock_(clock) {}

  /// Names the files of one owner: what one opened is never given to another, which may have
  /// opened the same path before its content was replaced.
  std::uint64_t AddOwner();
  /// The open file, or null when there is none of that name. Anything but a regular file is
  /// DataLoss. When the process runs out of descriptors the cache lets go of its own and tries
  /// again. What is kept is opened anew once a read found it changed, or its path leads elsewhere.
  /// A file that is opened and that `is_expected` does not take is Aborted.
  StatusOr<std::shared_ptr<const CachedFile>> Open(
      const Folders& allowed, std::uint64_t owner, const std::string& path,
      const std::function<bool(const FileIdentity&)>& is_expected);
  /// Closes what only the cache holds of this owner's files.
  void Forget(std::uint64_t owner);

 private:
  struct Entry {
    std::uint64_t owner = 0;
    std::string path;
    std::shared_ptr<const CachedFile> file;
    TimeMs looked_at = 0;  ///< when its path was
  };
  using Recent = std::list<Entry>;

  static const Clock& SteadyTime();
  static std::string KeyOf(std::uint64_t owner, const std::string& path);
  std::shared_ptr<const CachedFile> Find(const std::string& key, const std::string& path);
  void Drop(const std::string& key, const CachedFile& file);
  std::shared_ptr<const CachedFile> Keep(Entry entry);

  const std::size_t max_open_;
  const Clock& clock_;
  std::mutex mu_;
  std::uint64_t owners_ = 0;                                  // guarded by mu_
  Recent recent_;                                             // guarded by mu_, newest first
  std::unordered_map<std::string, Recent::iterator> by_key_;  // guarded by mu_
};

}  // namespace patchbay::zarr
