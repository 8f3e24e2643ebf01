// A process as another one can later recognise it, or prove that it is gone.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"

namespace patchbay {

struct PidStamp {
  std::string host;      ///< HostIdentity of its machine and namespaces
  std::int64_t pid = 0;  ///< there
  /// In clock ticks since the machine's start; tells apart processes with the same pid.
  std::uint64_t started = 0;

  static constexpr auto Fields() {
    using T = PidStamp;
    return AsFullObject(Field("host", &T::host), Field("pid", &T::pid).Within(1, 1 << 22),
                        Field("started", &T::started));
  }
};

/// The process that calls. FailedPrecondition without /proc.
StatusOr<PidStamp> ThisPid();

/// True when the process is seen to have ended; false while it lives and when that cannot be seen
/// from here (another machine, another PID namespace).
bool HasEnded(const PidStamp& process);

}  // namespace patchbay
