// A trainer's slots, batches and leases against each other. Slow: for tests and the simulator.
#pragma once

#include "runtime/core/status.h"
#include "scheduler/state/job_table.h"
#include "scheduler/state/lease_table.h"
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// Every lease of the trainer is in the table and counted at its slot, no two of them may write the
/// same bytes, none into a slot of a later generation, and a free slot has none.
Status CheckSlots(const Stream& stream, const Trainer& trainer, const LeaseTable& leases);
/// A batch is bound to one slot, its shards are counted, and those to lease are the pending ones.
Status CheckFillings(const Trainer& trainer, const LeaseTable& leases);
/// The same of all open streams, whose jobs run; no shard lease is of another one.
Status CheckStreams(const StreamBook& streams, const LeaseTable& leases, const JobTable& table);

}  // namespace patchbay::scheduler
