// Cores that this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace patchbay {

/// By its affinity and the quotas of the control groups (version 2) around it; at least 1. `root`
/// is where /proc and the groups are looked for: "" for the machine, a folder in tests.
std::int64_t UsableCores(const std::string& root = "");

}  // namespace patchbay
