// A store of Patchbay's image writer as verify looks at it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/image_store.h"
#include "runtime/zarr/store_metadata.h"

namespace patchbay::zarr {

struct OpenedLevel {
  std::string path;  ///< below the store
  Array array;
  LevelSize size;
};

struct OpenedStore {
  std::string path;
  MetadataDocuments documents;
  ImageStoreSettings settings;  ///< dtype, channels, chunk_px and shard_px only
  std::vector<OpenedLevel> levels;
  std::optional<StoreRoots> recorded;  ///< absent when either digest is
  std::vector<LevelFiles> listed;      ///< empty: the store lists no shard files, or not properly
  std::vector<std::string> faults;     ///< of what is recorded

  const OpenedLevel& At(const ShardPlace& place) const {
    return levels[static_cast<std::size_t>(place.level)];
  }
  /// "0/c/0/3/4"
  std::string FileOf(const ShardPlace& place) const;
  /// What is listed of a shard's file; nothing when the store has no list.
  std::optional<std::optional<std::uint32_t>> Listed(const ShardPlace& place) const;
};

/// NotFound: no store, or the metadata of a level is missing; Unimplemented: not of the image
/// writer.
StatusOr<OpenedStore> OpenStore(const std::string& path);

}  // namespace patchbay::zarr
