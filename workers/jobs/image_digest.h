// What names an image in a plan.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/hash.h"
#include "workers/jobs/task.h"

namespace patchbay::workers {

/// A slide: SHA-256 of its file, remembered in the node's digest cache. A store: the byte root its
/// metadata carries, or for a store of another writer a SHA-256 over the names and digests of all
/// its files. Moves the task's progress. `path` is canonical.
StatusOr<Digest> ImageDigest(TaskContext& context, const std::string& path);

/// The byte root that a store's metadata carries; nothing for stores of other writers and what
/// cannot be read. Reads one file.
std::optional<Digest> RecordedDigest(const std::string& store);

}  // namespace patchbay::workers
