// Decides which jobs a key may see. Private to scheduler/core.
#pragma once

#include "scheduler/core/journal_barrier.h"

namespace patchbay::scheduler {

/// Operators see every job, others the jobs submitted with the same key.
bool MaySee(const PeerIdentity& identity, const Job& job);
/// Null, and refused, when no such job or the peer may not see it.
Job* VisibleJob(JournalBarrier& barrier, const Request& request, JobId id);
/// The piece of the task's result from `offset` on that fits into one message.
protocol::ResultFetched PieceOf(const TaskId& id, const Task& task, std::uint64_t offset);

}  // namespace patchbay::scheduler
