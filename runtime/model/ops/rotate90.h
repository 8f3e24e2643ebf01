// rotate90: rotates the patch by 0, 90, 180 or 270 degrees, each equally likely. No options; the
// patch must be square (CheckOps).
#pragma once

#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

struct Rotate90Options {
  static config::Key Keys();
};

}  // namespace patchbay::plan
