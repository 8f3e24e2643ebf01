// brightness: multiplies every value of a patch by one factor.
#pragma once

#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

/// brightness as a row of the table of ops.
plan::OpRow DescribeBrightness();

}  // namespace patchbay::ops
