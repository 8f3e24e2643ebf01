// Memory that this process may use of the machine's, and memory that it used.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// The most private memory this process may have (RLIMIT_DATA: heap, stacks, private mappings; not
/// files and rings it maps). Above it allocation fails: a task ends with ResourceExhausted, a stage
/// ends the process. 0 = no limit.
Status LimitMemory(std::uint64_t size_bytes);

/// The most that was resident at once, with what is mapped from files and rings (VmHWM).
std::uint64_t PeakResidentBytes();

/// Freed memory stays with the process instead of going back to the kernel and being faulted in
/// again with the next task: tasks free and take tens of megabytes, encoders a context for each
/// block. The most it keeps is what it had in use at once. Call before the first thread starts.
void KeepFreedMemory();

/// As many descriptors as the system allows: every open slide takes one.
void RaiseDescriptorLimit();

}  // namespace patchbay::workers
