// Sizes of a task's inputs and of its lease in a message.
#pragma once

#include <cstddef>

#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// Bytes of the results that the task depends on.
std::size_t InputBytes(const Job& job, const Task& task);
/// An upper bound on the bytes that the lease of this task takes in a message.
std::size_t LeaseBytes(const Job& job, const Task& task);

}  // namespace patchbay::scheduler
