// Lines from a program to its parent process, over the pipe passed as --ready-fd: the line "ready
// ...", an empty line for each heartbeat, and "failed ..." before it gives up.
#pragma once

#include <string_view>

#include "runtime/core/clock.h"
#include "runtime/wire/control/event_loop.h"

namespace patchbay::control {

inline constexpr TimeMs kParentHeartbeatMs = 250;

/// The write end of that pipe. It never blocks: lines that do not fit are dropped, since a parent
/// that does not read is frozen. Lives on its loop's thread.
class ParentPipe {
 public:
  /// Takes over the descriptor, marks it close-on-exec and sends a heartbeat at once and every
  /// kParentHeartbeatMs as long as the loop runs. -1: no parent listens. `loop` must outlive it.
  ParentPipe(EventLoop& loop, int fd);
  ~ParentPipe();
  ParentPipe(const ParentPipe&) = delete;
  ParentPipe& operator=(const ParentPipe&) = delete;

  /// Sends "ready", or "ready `what`".
  void ReportReady(std::string_view what = {});
  /// Says "failed `why`", in one line: the program is about to end for it.
  void ReportFailure(std::string_view why);

 private:
  void Write(std::string_view text) const;

  EventLoop& loop_;
  const int fd_;
  EventLoop::Id timer_ = 0;
};

}  // namespace patchbay::control
