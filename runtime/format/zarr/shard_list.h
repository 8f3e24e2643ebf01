// The list of a store's shard files inside its metadata: attributes.patchbay.shards of the root.
//
// One object per level, finest first: "digest", the level's node in the byte root, and "files", one
// string per row of the level's shard grid, channel after channel, slices by slices, with a word
// per column: the first
// eight hex digits of the file's SHA-256 and the eight of its seal, "-" where there is no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/image_store.h"

namespace patchbay::zarr {

/// A store with more shards in all levels together has no list: a list takes 17 bytes per file, and
/// every reader of the store parses it.
inline constexpr std::int64_t kMaxListedShards = 1 << 16;

/// The bits of a file's digest that ListedShard holds.
std::uint32_t FirstBitsOf(const Digest& digest);
/// Eight hex digits.
std::string HexOf(std::uint32_t first_bits);

/// Whether stores of this shape carry a list.
bool ListsShards(const ImageStoreSettings& settings, const std::vector<Extent>& levels);

/// Puts the list into the root document, unless `levels` is empty. InvalidArgument when they have
/// other shard grids than `sizes`.
Status PutShardList(const ImageStoreSettings& settings, const std::vector<Extent>& sizes,
                    const std::vector<LevelFiles>& levels, Json& root_document);

/// The list in the root document; empty when it has none. InvalidArgument, without the document's
/// name, for a list that is not exactly one for these levels.
StatusOr<std::vector<LevelFiles>> ShardListIn(const Json& root_document,
                                              const ImageStoreSettings& settings,
                                              const std::vector<Extent>& sizes);

/// Makes the arrays of a store's levels (finest first) expect exactly the files that the root's
/// attributes list: a missing or replaced file is then an error. Without a list, an absent file is
/// the fill value and any shard is read. DataLoss or InvalidArgument, without the document's name,
/// for a list that does not fit these arrays.
Status ExpectListedFiles(const Json& attributes, std::vector<Array>& levels);

}  // namespace patchbay::zarr
