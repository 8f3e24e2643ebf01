#include "scheduler/core/job_access.h"

#include <algorithm>

namespace patchbay::scheduler {

bool MaySee(const PeerIdentity& identity, const Job& job) {
  return identity.role == Role::kOperator || identity.key_name == job.submitter;
}

Job* VisibleJob(JournalBarrier& barrier, const Request& request, JobId id) {
  Job* job = barrier.table().Find(id);
  if (job != nullptr && MaySee(*request.identity, *job)) return job;
  barrier.Refuse(request, NotFound("find job: ", id, ": no such job"));
  return nullptr;
}

protocol::ResultFetched PieceOf(const TaskId& id, const Task& task, std::uint64_t offset) {
  const std::size_t from = std::min<std::uint64_t>(offset, task.result.size());
  return {id, task.state, task.result.substr(from, protocol::kMaxInlineResultBytes),
          task.result.size()};
}

}  // namespace patchbay::scheduler
