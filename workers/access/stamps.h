// What shows, cheaply, that an image is still the one that was planned.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace patchbay::workers {

/// The byte root that a store's metadata carries; nothing for stores of other writers and what
/// cannot be read. Reads one file.
std::optional<Digest> RecordedDigest(const std::string& store);

/// A member of a store's attributes.patchbay; null where there is none.
Json RecordedAttribute(const std::string& store, const char* name);

/// What is cheap to see of an image and differs when its content does: size and time of change of a
/// slide's file or of the metadata of a store of another writer, which every node of a shared file
/// system sees alike. For a store that records its own digest: empty, its digest is the stamp.
/// Content that is replaced under the same size and time goes unseen, as does what changes in the
/// files beside a slide that has several (MIRAX), or in a chunk of another writer's store.
StatusOr<std::string> StampOf(const std::string& path);

}  // namespace patchbay::workers
