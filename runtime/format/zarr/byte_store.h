// Storage of stores and slides: objects named by keys, read by ranges. Local files today; another
// kind of storage is another ByteStore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"

namespace patchbay::zarr {

/// One object, open for reading. Thread-safe.
class StoredBytes {
 public:
  virtual ~StoredBytes() = default;

  virtual std::uint64_t size_bytes() const = 0;
  /// A stamp that differs when the content does, as far as the storage tells without reading it: a
  /// file's device, inode, size, mtime and ctime when it was opened. An object that was opened
  /// again is the same one as long as its stamp is.
  virtual std::string_view stamp() const = 0;
  /// Fills `out` from `offset`. DataLoss when the object is too short; Aborted when it no longer
  /// matches its stamp: `out` is then invalid, and the object must be opened again. `name` is for
  /// errors.
  virtual Status Read(std::uint64_t offset, std::span<std::byte> out,
                      std::string_view name) const = 0;
};

/// Objects by key. Keys are relative paths with `/` and without `.` and `..`; they come from
/// checked metadata, never from a user. Thread-safe.
class ByteStore {
 public:
  virtual ~ByteStore() = default;

  /// The object, or null when there is none. A key that names something else than an object (a
  /// folder, a pipe) is DataLoss.
  virtual StatusOr<std::shared_ptr<const StoredBytes>> Open(std::string_view key) = 0;
  /// Keys of the objects below `prefix` (empty: all), sorted; nothing when there is none.
  virtual StatusOr<std::vector<std::string>> List(std::string_view prefix) = 0;
  /// The key as errors name it.
  virtual std::string NameOf(std::string_view key) const = 0;
};

/// SHA-256 of all of an object.
StatusOr<Digest> DigestOf(const StoredBytes& object, std::string_view name);

/// A whole object of at most `max_bytes` (InvalidArgument above); NotFound when there is none.
StatusOr<std::string> ReadObject(ByteStore& store, std::string_view key, std::size_t max_bytes);

}  // namespace patchbay::zarr
