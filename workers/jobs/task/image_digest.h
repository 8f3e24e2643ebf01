// The digest that identifies an image in a plan.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// A slide: SHA-256 of its file, remembered in the node's digest cache; of a DICOM slide as of a
/// volume's files. A store: the byte root its
/// metadata carries, or for a store of another writer a SHA-256 over the names and digests of all
/// its files. Moves the task's progress. `path` is canonical.
StatusOr<Digest> ImageDigest(TaskContext& context, const std::string& path);

/// Bytes of the files that ImageDigest reads of a slide.
std::uint64_t BytesOfSlide(TaskContext& context, const std::string& path);

/// The digest of a volume: of one file its own digest, of several files that of their digests. File
/// names do not matter. Errors as ImageDigest.
StatusOr<Digest> DigestOfFiles(TaskContext& context, const std::vector<std::string>& files);

}  // namespace patchbay::workers
