// Ctrl-C and SIGTERM as a flag that a command polls, so that it can stop the processes that it
// started.
#pragma once

namespace patchbay::cli {

/// While one lives, SIGINT and SIGTERM only set a flag; a second one ends the program at once (its
/// processes die with it). At most one InterruptScope at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

/// A signal came since the scope began.
bool Interrupted();

/// Waits that long, or until interrupted.
void PauseMs(long milliseconds);

}  // namespace patchbay::cli
