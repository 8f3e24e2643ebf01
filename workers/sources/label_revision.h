// Selects the revision of a label set: the current one, or one that a plan or a lock names.
#pragma once

#include <string>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

struct LabelRevision {
  enum class By : std::uint8_t {
    kCurrent,
    kDigest,  ///< of the revision
    kIndex,   ///< of the index of its places
  };
  By by = By::kCurrent;
  Digest digest = {};  ///< unless kCurrent
};

/// NotFound says what is there, and for a revision that is gone what takes the current one.
StatusOr<zarr::OpenedLabelSet> OpenRevision(const Folders& allowed, const std::string& store,
                                            const std::string& set, const LabelRevision& revision);

}  // namespace patchbay::workers
