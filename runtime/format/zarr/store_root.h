// The root of a store, as commands and jobs ask about it before they open it.
#pragma once

#include <string>

#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Whether a folder is a Zarr node, v2 or v3: it has an entry zarr.json, .zgroup or .zarray.
/// Opening it says what is wrong with that entry.
bool IsStore(const std::string& folder);

/// attributes.patchbay of a store's root; an empty object for stores of other writers and for what
/// cannot be read.
Json OwnAttributes(const Folders& allowed, const std::string& store);

/// The SHA-256 of the source that a store was made from, in hex; "" when it does not say.
std::string SourceDigestOf(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr
