// flip: mirrors the patch left-right and top-bottom, each with its own probability; volumes along
// the axes that are named.
#pragma once

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

struct FlipOptions {
  double horizontal = 0.5;  ///< probability of mirroring left-right
  double vertical = 0.5;    ///< probability of mirroring top-bottom
  /// `axes` is given: a volume is mirrored along each of these, each with probability 0.5.
  bool by_axes = false;
  bool z = false, y = false, x = false;

  static config::Key Keys();
  /// From a value that passed Keys().
  static FlipOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
