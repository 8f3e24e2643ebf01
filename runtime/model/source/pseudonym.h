// Pseudonyms of what a source's header says of its patient.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/series_path.h"

namespace patchbay {

/// 16 hex digits of HMAC-SHA-256 under the pseudonym key; "" without a key or a value. `kind` keeps
/// a patient and a study of the same identifier apart: "patient", "study", "series",
/// "frame_of_reference".
inline std::string PseudonymOf(const std::string& key, std::string_view kind,
                               const std::string& value) {
  if (key.empty() || value.empty()) return "";
  return HmacSha256(AsBytes(key), StrCat(kind, "\n", value)).Hex().substr(0, kSeriesDigits);
}

}  // namespace patchbay
