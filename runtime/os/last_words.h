// The last message of a program that ends for want of memory or threads.
#pragma once

namespace patchbay {

/// From now on an exception that nobody catches, on any thread, ends the process with one line on
/// stderr and exit code 1 when it says that memory or threads have run out; another one aborts as
/// before, for it is a defect. Call it first in main.
void ExplainTermination();

}  // namespace patchbay
