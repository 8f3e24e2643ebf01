// Pseudonyms that link a volume to its patient, study and series for holders of the key.
#pragma once

#include <string>
#include <string_view>

#include "runtime/format/json/json.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// 16 hex digits of HMAC-SHA-256 under the pseudonym key; "" without a key or a value. `kind` keeps
/// a patient and a study of the same identifier apart: "patient", "study", "series",
/// "frame_of_reference".
std::string PseudonymOf(const std::string& key, std::string_view kind, const std::string& value);

/// Pseudonyms by kind; unknown ones are left out. Series of one study share the study's. With
/// several frames of reference, "frame_of_reference" is a list.
Json IdentityOf(const std::string& key, const SourceIdentity& identity);

}  // namespace patchbay::workers
