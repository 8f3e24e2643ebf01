// The files of a store's pixels, for stores without a list of digests: sizes and times of each, so
// that a file that is written, removed or added later is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Size and mtime of the metadata of a store's root and of every file of its levels. Label sets and
/// whatever else lies in the store do not count: importing one changes no pixel.
class StoreFiles {
 public:
  /// Lists the files as they are now; one stat per file. `after_file` is called after each, and its
  /// error ends the work. NotFound: no multiscales; ResourceExhausted: more files than are looked
  /// at.
  static StatusOr<StoreFiles> List(const Folders& allowed, const std::string& store,
                                   const std::function<Status()>& after_file = {});

  /// Whether the file was listed with that size and mtime.
  bool Has(std::string_view key, const FileIdentity& identity) const;
  /// Whether a file of that name was listed.
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  /// A stamp of the files: 32 hex digits, the same on every node that sees the same files.
  std::string Stamp() const;
  std::size_t MemoryBytes() const { return files_.capacity() * sizeof(File); }

 private:
  struct File {
    std::uint64_t key = 0;  ///< first bits of the SHA-256 of its key
    std::uint64_t size_bytes = 0;
    std::int64_t mtime_ns = 0;
  };

  Status Add(const std::string& store, std::string_view key, const struct stat& st);
  Status AddBelow(const Folders& allowed, const std::string& store, const std::string& level,
                  const std::function<Status()>& after_file);
  const File* Find(std::string_view key) const;

  std::vector<File> files_;  ///< by key
};

}  // namespace patchbay::zarr
