// The steps that each op comes to. A part of chain.
#pragma once

#include <vector>

#include "ops/chain/chain_program.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {

/// Every step that changes values, in the order in which they are applied to the builder's shape.
Status CompileSteps(std::vector<plan::OpStep> steps, ProgramBuilder& builder);

}  // namespace patchbay::ops
