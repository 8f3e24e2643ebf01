// Inner chunks that are compressed tiles of a slide: the codecs that the Python package imagecodecs
// registers for Zarr v3, as far as slides have such tiles.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/tiles/tile_format.h"
#include "runtime/format/zarr/codec/array_metadata.h"
#include "runtime/format/zarr/codec/chunk_codec.h"

namespace patchbay::zarr {

/// "imagecodecs_jpeg", "imagecodecs_jpeg2k".
std::string_view NameOf(tiles::TileCodec codec);

/// The entry of `codecs` for tiles of that format.
Json ToJson(const tiles::TileFormat& format, int channels);

/// Nothing for a codec of another name. Unimplemented for tiles that slides do not have: chunks
/// other than interleaved (y, x, c) of 1 or 3 channels of uint8, a colour space that is not stated,
/// options that change pixels.
StatusOr<std::optional<tiles::TileFormat>> ParseTileFormat(std::string_view name,
                                                           const Json& options,
                                                           const ArrayMetadata& array,
                                                           std::string_view what);

/// DecodeChunkInto for the bytes of one tile: no more of it than the target takes, straight to it
/// where its strides are those of interleaved rows.
Status DecodeTileInto(const ArrayMetadata& array, std::span<const std::byte> tile,
                      const ChunkTarget& target, ChunkScratch::State& scratch);

}  // namespace patchbay::zarr
