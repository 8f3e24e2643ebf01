// The pins of a lock for each image of a run; they arrive in the job's manifest.
#pragma once

#include <string>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/model/jobs/stream_request.h"

namespace patchbay::workers {

/// FailedPrecondition unless the image has the digest it is pinned to.
Status CheckPinned(const plan::RowPins& pins, const Digest& digest);
/// The revision of a label set that the image is pinned to; FailedPrecondition without one.
StatusOr<Digest> PinnedSet(const plan::RowPins& pins, const std::string& set);

}  // namespace patchbay::workers
