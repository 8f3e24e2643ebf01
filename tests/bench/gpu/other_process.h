// A second process on the GPU that writes into a block of the first, as a worker writes into a
// trainer's slot.
#pragma once

#include <sys/types.h>

#include "runtime/core/status.h"
#include "runtime/memory/device_block.h"

namespace patchbay::bench {

/// Not movable. Make it before this process calls CUDA: a driver does not survive fork().
class OtherProcess {
 public:
  OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess();  ///< waits for it

  /// Seconds that a copy of `block.size_bytes()` from the other process's memory into `block`
  /// takes, the median of rounds. Unavailable when it could not: why stands on stderr.
  StatusOr<double> SecondsOfAWrite(const memory::DeviceBlock& block);

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace patchbay::bench
