// What names an image in a plan.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// A slide: SHA-256 of its file, remembered in the node's digest cache. A store: the byte root its
/// metadata carries, or for a store of another writer a SHA-256 over the names and digests of all
/// its files. Moves the task's progress. `path` is canonical.
StatusOr<Digest> ImageDigest(TaskContext& context, const std::string& path);

/// Of a volume in several files: a file's own digest; of several that of their digests, whatever
/// the files are called. Errors as ImageDigest.
StatusOr<Digest> DigestOfFiles(TaskContext& context, const std::vector<std::string>& files);

}  // namespace patchbay::workers
