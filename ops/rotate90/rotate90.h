// rotate90: turns the patch by 0, 90, 180 or 270 degrees, each equally likely; it is square. Exact.
#pragma once

#include <vector>

#include "ops/rotate90/rotate90_math.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct Rotate90Options {
  static constexpr plan::OpNumber kNumber{3};
  static std::vector<plan::Option<Rotate90Options>> Table();
};

/// The two highest bits of the key's first word.
Rotate90Parameters DrawRotate90(const DrawKey& key);

}  // namespace patchbay::ops
