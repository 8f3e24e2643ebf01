// Pseudonyms that link a volume to its patient, study and series for holders of the key.
#pragma once

#include <string>

#include "runtime/format/json/json.h"
#include "runtime/model/source/pseudonym.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

using patchbay::PseudonymOf;

/// Pseudonyms by kind; unknown ones are left out. Series of one study share the study's. With
/// several frames of reference, "frame_of_reference" is a list.
Json IdentityOf(const std::string& key, const SourceIdentity& identity);

}  // namespace patchbay::workers
