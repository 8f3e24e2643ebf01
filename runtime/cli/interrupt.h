// Ctrl-C and SIGTERM as something a command looks at, so that it can take down what it started.
#pragma once

namespace patchbay::cli {

/// While one lives, SIGINT and SIGTERM only set a flag; a second one ends the program at once (what
/// it started dies with it). At most one at a time.
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
