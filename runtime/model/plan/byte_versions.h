// Versions of the code that decides the bytes of patches beside their plan. Raised where a change
// makes other bytes.
#pragma once

#include <string>

#include "runtime/format/json/json.h"

namespace patchbay::plan {

inline constexpr int kOpsVersion = 2;       ///< of ops/: formulas, order, draws
inline constexpr int kDecodersVersion = 1;  ///< of workers/sources: what a slide's tile decodes to
inline constexpr int kFormatsVersion = 1;   ///< of the layout of a batch in its slot

/// {"decoders", "formats", "ops"}: of this build.
inline Json ByteVersions() {
  return {{"ops", kOpsVersion}, {"decoders", kDecodersVersion}, {"formats", kFormatsVersion}};
}
/// The same as canonical text: what a worker offers, and what a stream asks for.
inline std::string ByteVersionsText() { return DumpJson(ByteVersions()); }

}  // namespace patchbay::plan
