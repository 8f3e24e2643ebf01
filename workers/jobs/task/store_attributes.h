// What a store of ours says of itself in its root metadata.
#pragma once

#include <string>

#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// attributes.patchbay of a store's root, or an empty object when it is not a store of ours.
Json PatchbayAttributes(const Folders& allowed, const std::string& store);

/// The SHA-256 of what the store was made from, in hex; "" when it does not say.
std::string SourceDigestOf(const Folders& allowed, const std::string& store);

}  // namespace patchbay::workers
