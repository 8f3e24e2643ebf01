// contrast: moves the values of a patch away from its mean or towards it, within its least and
// largest value.
#pragma once

#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

/// contrast as a row of the table of ops.
plan::OpRow DescribeContrast();

}  // namespace patchbay::ops
