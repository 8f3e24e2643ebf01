// Files below a folder as a ByteStore.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/lru_cache.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/format/zarr/store_files.h"
#include "runtime/os/file.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

// A bounded cache of open descriptors: the least recently used one is closed first. Bytes are
// returned only as long as their file is unchanged since it was opened.

/// A regular file that stays open as long as it has an owner. Every read checks its identity
/// afterwards, with one fstat.
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

/// Describes how a file differs from the one that was opened; `now`: the file at the path, if there
/// is one.
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
      : clock_(clock), files_(max_open, 0) {}

  /// The id of an owner of files. A file that one owner opened is never returned to another, which
  /// may have opened the same path before its content was replaced.
  std::uint64_t AddOwner();
  /// The open file, or null when there is none of that name. DataLoss for anything but a regular
  /// file. When the process runs out of descriptors, the cache closes its own and tries again. A
  /// cached file is opened again once a read found it changed, or its path leads to another file.
  /// Aborted when `is_expected` refuses the opened file.
  StatusOr<std::shared_ptr<const CachedFile>> Open(
      const Folders& allowed, std::uint64_t owner, const std::string& path,
      const std::function<bool(const FileIdentity&)>& is_expected);
  /// Closes the owner's files that nothing but the cache holds.
  void Forget(std::uint64_t owner);

 private:
  struct Kept {
    std::uint64_t owner = 0;
    std::shared_ptr<const CachedFile> file;
    TimeMs looked_at = 0;  ///< when its path was checked
  };
  using Files = LruCache<std::string, Kept>;

  static const Clock& SteadyTime();
  static std::string KeyOf(std::uint64_t owner, const std::string& path);
  std::shared_ptr<const CachedFile> Find(const Folders& allowed, const std::string& key,
                                         const std::string& path);
  void Drop(const std::string& key, const CachedFile& file);
  std::shared_ptr<const CachedFile> Keep(const std::string& key, Kept opened);

  const Clock& clock_;
  std::mutex mu_;
  std::uint64_t owners_ = 0;  // guarded by mu_
  Files files_;               // guarded by mu_; by KeyOf
};

/// The regular files below `root`; the empty key is `root` itself. A file that was closed to make
/// room, or that changed, and is opened again may be another one by then: its stamp tells.
/// Every thread that opens a file stays in the folders given here.
class FileByteStore final : public ByteStore {
 public:
  FileByteStore(Folders allowed, std::string root, std::shared_ptr<FileCache> files);
  ~FileByteStore() override;
  FileByteStore(const FileByteStore&) = delete;
  FileByteStore& operator=(const FileByteStore&) = delete;

  /// From now on a file that is not as listed is Aborted: written, gone, or not there before. Call
  /// before other threads read.
  void Expect(std::shared_ptr<const StoreFiles> files) { expected_ = std::move(files); }

  StatusOr<std::shared_ptr<const StoredBytes>> Open(std::string_view key) override;
  StatusOr<std::vector<std::string>> List(std::string_view prefix) override;
  std::string NameOf(std::string_view key) const override;

 private:
  const std::string root_;
  const std::shared_ptr<FileCache> files_;
  const std::uint64_t owner_;
  const Folders allowed_;
  std::shared_ptr<const StoreFiles> expected_;  ///< null: any file
};

/// One file, which stays open as long as it has an owner; NotFound when there is none.
StatusOr<std::shared_ptr<const StoredBytes>> OpenStoredFile(const Folders& allowed,
                                                            const std::string& path);

}  // namespace patchbay::zarr
