// How a key's range is written. A part of config.
#pragma once

#include <string>

#include "runtime/format/yaml/key_table.h"

namespace patchbay::config {

/// "1..4096", ">= 1", "<= 4096", or "".
std::string RangeText(const Key& key);

}  // namespace patchbay::config
