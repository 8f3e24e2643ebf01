// Shares of a stream's time: the trainer, and the stages of the workers it waited for.
#pragma once

#include <array>
#include <string_view>

#include "runtime/client/stream.h"

namespace patchbay::client {

struct StageShare {
  std::string_view name;
  /// Share of the loop's wall time from the second batch on. The trainer's is the time that it did
  /// not wait; the wait is divided among the stages as the workers' time was. 0 before anything is
  /// known.
  double fraction = 0;
  /// Mean for a batch of this rank, in seconds: the workers' stages over all of them together, so
  /// it may exceed the time between batches; the trainer's as the clock on the wall shows it.
  double s_per_batch = 0;
};

/// storage, decode, transform, transfer, trainer.
std::array<StageShare, 5> BreakdownOf(const StreamStats& stats);

}  // namespace patchbay::client
