// Checks that a trainer's ring fits into the available memory.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"
#include "runtime/os/available_memory.h"

namespace patchbay::plan {

struct RingSize {
  std::uint64_t slot_bytes = 0;
  std::uint32_t slots = 0;     ///< all of them
  std::uint32_t prefetch = 0;  ///< slots for batches made ahead
};

/// InvalidArgument unless the ring fits into `room` (kMemoryUsePercent of it). It names the key to
/// change: batch.prefetch where one batch ahead would fit, else batch.global_size.
Status CheckRingFits(const RingSize& ring, const MemoryBudget& room);

}  // namespace patchbay::plan
