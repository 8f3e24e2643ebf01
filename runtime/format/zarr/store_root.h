// Questions about the root of a store that commands and jobs ask before they open it.
#pragma once

#include <string>

#include "runtime/format/json/json.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Whether a folder is a Zarr node, v2 or v3: it has an entry zarr.json, .zgroup or .zarray.
/// Whether that entry is valid shows only when the store is opened.
bool IsStore(const Folders& allowed, const std::string& folder);

/// attributes.patchbay of a store's root; an empty object for stores of other writers and for
/// unreadable stores.
Json OwnAttributes(const Folders& allowed, const std::string& store);
/// The same of a root that was read; a part of it, or an object that always lives.
const Json& OwnAttributes(const GroupMetadata& root);
const Json& OwnAttributes(GroupMetadata&&) = delete;

/// The SHA-256 of the source that a store was made from, in hex; "" when the store does not record
/// it.
std::string SourceDigestOf(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr
