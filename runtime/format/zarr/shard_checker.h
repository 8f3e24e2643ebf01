// One zarr shard of a finished store: is its file the one that was written, does every chunk read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// The findings on one shard. Made by one thread.
struct ShardFindings {
  ShardPlace place;
  bool present = false;     ///< a file is there, or something else under its name
  bool missing = false;     ///< listed, and nothing is there
  bool unexpected = false;  ///< present, and listed as not stored
  Digest digest;            ///< of the file, where it could be read
  std::uint64_t size_bytes = 0;
  std::vector<Digest> chunks;
  std::vector<std::string> bad;
};

/// Checks one shard after another on one thread.
class ShardChecker {
 public:
  /// `store` outlives the checker.
  ShardChecker(const Folders& allowed, const OpenedStore& store)
      : store_(store),
        hasher_(store.settings),
        files_(allowed, store.path, std::make_shared<FileCache>(1)) {}

  ShardFindings Check(const ShardPlace& place);

 private:
  /// False when there is nothing to read: a file that is missing, surplus or no file at all.
  bool CheckPresence(const std::string& name, ShardFindings& out) const;
  /// False when the file is too broken for its chunks to be looked at one by one.
  bool CheckFile(const StoredBytes& file, const std::string& name, ShardFindings& out) const;
  void CheckChunks(ShardFindings& out);
  StatusOr<Digest> CheckChunk(const OpenedLevel& level, const Point& at);
  /// Checks that a file that decodes well has the digest recorded when it was written.
  void CheckDigest(const std::string& name, ShardFindings& out) const;

  const OpenedStore& store_;
  PixelHasher hasher_;
  FileByteStore files_;
  ChunkScratch scratch_;
  std::vector<std::byte> encoded_, pixels_;
};

}  // namespace patchbay::zarr
