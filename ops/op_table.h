// The table of ops: one row each.
#pragma once

#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

/// Every op, in the order in which ops are applied: geometry, colour, blur, noise, range, type. A
/// new op takes its place by what it works on, and a number that no op had.
const plan::OpTable& Table();

}  // namespace patchbay::ops
