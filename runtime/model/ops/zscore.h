// zscore: subtracts the mean of the image and divides by its deviation, both of the windowed values
// over the body of the whole volume, never of the patch.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

/// Least deviation that values are divided by.
inline constexpr double kMinDeviation = 1e-8;

struct ZscoreOptions {
  static config::Key Keys();
};

}  // namespace patchbay::plan
