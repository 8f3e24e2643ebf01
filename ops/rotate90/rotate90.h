// rotate90: turns the patch by 0, 90, 180 or 270 degrees, each equally likely; it is square. Exact.
#pragma once

#include <vector>

#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct Rotate90Options {
  static constexpr plan::OpNumber kNumber{3};
  static std::vector<plan::Option<Rotate90Options>> Table();
};

/// Quarter turns against the clock, as numpy.rot90 counts them: 0..3.
struct Rotate90Parameters {
  int turns = 0;
  bool operator==(const Rotate90Parameters&) const = default;
};

/// The two highest bits of the key's first word.
Rotate90Parameters DrawRotate90(const DrawKey& key);

}  // namespace patchbay::ops
