// The last message of a program that ends for want of memory or threads.
#pragma once

namespace patchbay {

/// From now on an uncaught exception on any thread ends the process with one line on stderr and
/// exit code 1 if memory or threads have run out. Any other one still aborts, since it is a defect.
/// Call it first in main.
void ExplainTermination();

}  // namespace patchbay
