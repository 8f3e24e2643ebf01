// Names of the profiles by which tissue is told from background.
#pragma once

#include <string>
#include <vector>

namespace patchbay {

/// As `ingest --tissue` and `labels tissue --profile` take them.
inline std::vector<std::string> TissueProfiles() { return {"clam", "tiatoolbox", "histolab"}; }

}  // namespace patchbay
