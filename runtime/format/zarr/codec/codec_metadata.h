// Codec descriptions of v2 (numcodecs ids) and v3 (names with a configuration).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/codec/array_metadata.h"

namespace patchbay::zarr {

/// A v2 type string: "<i2", "|u1", ">f8".
struct DTypeV2 {
  DType dtype = DType::kUint8;
  bool big_endian = false;
};

/// nullopt for unsupported types (strings, times, complex numbers, records).
std::optional<DTypeV2> ParseDTypeV2(std::string_view text);

/// Appends a numcodecs codec ("id" or "numcodecs.<id>" with its options) to the chain.
/// Unimplemented names the codec.
Status AppendNumcodec(std::string_view id, const Json& options, const ArrayMetadata& array,
                      std::string_view what, CodecChain& chain);

/// Reads a v3 codec list into `array`: its chain, and for sharding_indexed its inner chunk shape
/// and index layout. `array` already has dtype, shape and shard_shape.
Status ParseCodecsV3(const Json& codecs, std::string_view what, ArrayMetadata& array);

/// A list of 1..2^40 (0 too when `zero_ok`) numbers.
StatusOr<std::vector<std::int64_t>> ParseExtents(const Json& object, const char* key, bool zero_ok,
                                                 std::string_view what);

/// InvalidArgument unless the chunk's bytes are within limits.
Status CheckChunk(const ArrayMetadata& array, std::string_view what);

/// One element in native byte order; zero bytes for null. InvalidArgument when the value is not of
/// the type or does not fit it.
StatusOr<std::vector<std::byte>> ParseFillValue(const Json& value, DType dtype,
                                                std::string_view what);

}  // namespace patchbay::zarr
