// Versions of the code that, together with the plan, decides the bytes of patches. Raise one when a
// change makes other bytes.
#pragma once

#include <string>

#include "runtime/format/json/json.h"

namespace patchbay::plan {

inline constexpr int kOpsVersion = 2;  ///< version of ops/: formulas, order, draws
/// The decoders in workers/sources, which turn a slide's tile into pixels.
inline constexpr int kDecodersVersion = 1;
inline constexpr int kFormatsVersion = 1;  ///< version of the layout of a batch in its slot

/// {"decoders", "formats", "ops"}: of this build.
inline Json ByteVersions() {
  return {{"ops", kOpsVersion}, {"decoders", kDecodersVersion}, {"formats", kFormatsVersion}};
}
/// ByteVersions as canonical text, which workers offer and streams ask for.
inline std::string ByteVersionsText() { return DumpJson(ByteVersions()); }

}  // namespace patchbay::plan
