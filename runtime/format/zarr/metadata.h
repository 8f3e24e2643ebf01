// Parses Zarr v2 and v3 metadata. Values that pass are safe to compute with: every size is bounded,
// every product checked, every codec known.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/format/zarr/codec/array_metadata.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Largest metadata document that is read.
inline constexpr std::size_t kMaxMetadataBytes = std::size_t{16} << 20;

/// A node that holds others; in v2 its attributes come from .zattrs.
struct GroupMetadata {
  int zarr_format = 3;
  Json attributes = Json::object();
};

/// Parses and checks. `what` names store and array in errors. InvalidArgument: malformed or beyond
/// a limit; Unimplemented: valid, but an unsupported codec, data type, grid or key encoding (the
/// text names it).
StatusOr<ArrayMetadata> ParseArrayV3(const Json& document, std::string_view what);
/// The same of a group. InvalidArgument for an array.
StatusOr<GroupMetadata> ParseGroupV3(Json document, std::string_view what);
/// `attributes` is the content of .zattrs, or an empty object.
StatusOr<ArrayMetadata> ParseArrayV2(const Json& document, Json attributes, std::string_view what);

/// The node at `path`. v3 wins where both are present. NotFound: no such node; Unimplemented: a zip
/// store.
StatusOr<ArrayMetadata> ReadArrayMetadata(const Folders& allowed, const std::string& path);
StatusOr<GroupMetadata> ReadGroupMetadata(const Folders& allowed, const std::string& path);
/// The same for the node under `key` of a byte store (empty: the store's root).
StatusOr<ArrayMetadata> ReadArrayMetadata(ByteStore& store, const std::string& key);
StatusOr<GroupMetadata> ReadGroupMetadata(ByteStore& store, const std::string& key);

}  // namespace patchbay::zarr
