// A store of Patchbay's image writer as verify looks at it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/store_metadata.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

struct OpenedLevel {
  std::string path;  ///< below the store
  Array array;
  Extent size;
};

/// Metadata as it is on disk and open arrays; no chunk has been read.
struct OpenedStore {
  std::string path;
  MetadataDocuments documents;
  ImageStoreSettings settings;  ///< axes, dtype, channels, chunk and shard only
  std::vector<OpenedLevel> levels;
  std::optional<StoreRoots> recorded;  ///< absent when either digest is
  std::vector<LevelFiles> listed;      ///< empty: the store lists no shard files, or not properly
  std::vector<std::string> faults;     ///< faults of the recorded data
  bool digests_tiles = false;          ///< kPixelDigestOf says so

  const OpenedLevel& At(const ShardPlace& place) const {
    return levels[static_cast<std::size_t>(place.level)];
  }
  /// "0/c/0/3/4"
  std::string FileOf(const ShardPlace& place) const;
  /// The listed entry of a shard's file; nothing when the store has no list.
  std::optional<std::optional<ListedShard>> Listed(const ShardPlace& place) const;
};

/// A box of a level as a region of its array. `channel`: ShardPlace's.
Region RegionOf(const ImageStoreSettings& settings, const Box& box, int channel = -1);
/// A (depth, height, width, channels) view as (c, y, x), (z, y, x) or, of the one channel that a
/// chunk has, (c, z, y, x).
TensorView AlongAxes(const ImageStoreSettings& settings, const TensorView& image);

/// NotFound: no store, or the metadata of a level is missing; Unimplemented: not of the image
/// writer.
StatusOr<OpenedStore> OpenStore(const Folders& allowed, const std::string& path);

}  // namespace patchbay::zarr
