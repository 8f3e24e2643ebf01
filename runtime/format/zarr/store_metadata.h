// The metadata documents of an image store, and the parts of them that its name depends on.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/image_store.h"

namespace patchbay::zarr {

/// Path below the store ("zarr.json", "0/zarr.json") to document. Without roots.
using MetadataDocuments = std::map<std::string, Json>;

/// InvalidArgument for settings, sizes or attributes that may not be written.
StatusOr<MetadataDocuments> BuildMetadata(const ImageStoreSpec& spec);

/// The document without its identifying parts: attributes.patchbay's digest, pixel_digest and
/// identity, and the consolidated copy of other documents.
Json WithoutIdentity(Json document);

/// A shard's place and the digest of its file.
struct ShardLeaf {
  ShardPlace place;
  Digest digest;
};

/// Node over the files of one level; leaves in row-major order, only shards that have a file.
Digest LevelBytesNode(const std::vector<ShardLeaf>& leaves);

/// Node over the pixels of one level: every inner chunk of the level's grid, channel after channel,
/// row-major.
Digest LevelPixelsNode(const ImageStoreSettings& settings, const Extent& level,
                       const std::vector<Digest>& chunks);

/// Puts a shard's chunk digests, row-major, at their places in the level's chunk grid; false when
/// their number is not that of its chunks inside the level.
bool PlaceChunkDigests(const ImageStoreSettings& settings, const Extent& level,
                       const ShardPlace& place, std::span<const Digest> of_shard,
                       std::vector<Digest>& of_level);

Digest BytesRoot(const MetadataDocuments& documents, const std::vector<Digest>& levels);
Digest PixelsRoot(const std::vector<Digest>& levels);

}  // namespace patchbay::zarr
