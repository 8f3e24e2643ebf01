// A slide's name in plans is the SHA-256 of its file. Hashing a slide costs seconds, so digests are
// remembered by (device, inode, size, mtime and ctime in ns).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// A file of remembered digests that any number of processes may share. Losing or damaging it costs
/// time, never a wrong digest: each record carries a checksum and bad ones are ignored.
class DigestCache {
 public:
  /// `folder`, which `allowed` must permit to write, is created when needed (owner-only). An empty
  /// `folder` turns the cache off.
  DigestCache(Folders allowed, std::string folder)
      : allowed_(std::move(allowed)), folder_(std::move(folder)) {}

  /// SHA-256 of the file's bytes, remembered or computed. Only regular files. FailedPrecondition
  /// when the file changes while it is read. A cache that cannot be written is not an error. The
  /// file's size is no bound on the time: `after_block` is called after each megabyte, and its
  /// error ends the work.
  StatusOr<Digest> DigestOf(const std::string& path,
                            const std::function<Status()>& after_block = {}) const;

  /// The remembered digest for `identity`, if any.
  std::optional<Digest> Find(const FileIdentity& identity) const;

  /// Remembers. Durable when it returns OK.
  Status Store(const FileIdentity& identity, const Digest& digest) const;

 private:
  std::string CachePath() const;

  Folders allowed_;  ///< around the files that are hashed, and `folder_`
  std::string folder_;
};

}  // namespace patchbay::workers
