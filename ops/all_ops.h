// The table of ops: one row each.
#pragma once

#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

/// Every op, in the order in which ops are applied: geometry, colour, blur, noise, range, type. A
/// new op is placed by its kind, and gets a number that no op has had.
const plan::OpTable& Table();

}  // namespace patchbay::ops
