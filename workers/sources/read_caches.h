// Caches that the open images of a process share: descriptors and shard indexes, each within one
// bound.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/shard_index.h"

namespace patchbay::workers {

/// How much a process keeps of the images it reads. Larger means fewer files opened and indexes
/// read again, and more descriptors and memory.
struct ReadCacheLimits {
  std::size_t open_files_max = 512;
  std::size_t index_bytes_max = std::size_t{256} << 20;
};

/// Copies share the caches.
struct ReadCaches {
  std::shared_ptr<zarr::FileCache> files;
  std::shared_ptr<zarr::IndexCache> indexes;

  /// For one image alone: 32 descriptors, 64 MiB of indexes.
  static ReadCaches ForOneImage();
  static ReadCaches Of(const ReadCacheLimits& limits);
};

}  // namespace patchbay::workers
