// How one trainer's slots come and go, whatever stream they are of. Private to scheduler/core.
#pragma once

#include <cstdint>

#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// The batch bound to the slot, if any, waits for the next free one.
void ForgetSlot(Trainer& trainer, std::uint32_t number);
/// A slot that rests at the trainer gives its batch up once no lease points into it.
void LeaveRestingIfClear(Trainer& trainer, std::uint32_t number);
/// A slot that was announced is free once no lease points into it. Says whether it became so.
bool FreeSlotIfClear(Trainer& trainer, std::uint32_t number);

}  // namespace patchbay::scheduler
