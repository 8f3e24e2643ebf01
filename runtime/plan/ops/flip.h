// flip: mirrors the patch left-right and top-bottom, each with its own probability.
#pragma once

#include "runtime/base/json.h"
#include "runtime/config/key_table.h"

namespace patchbay::plan {

struct FlipOptions {
  double horizontal = 0.5;  ///< probability of mirroring left-right
  double vertical = 0.5;    ///< probability of mirroring top-bottom

  static config::Key Keys();
  /// From a value that passed Keys().
  static FlipOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
