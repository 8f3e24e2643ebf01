// Results and inputs that one message does not carry.
#include <algorithm>
#include <utility>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/job_access.h"

namespace patchbay::scheduler {

void BatchDispatch::KeepPart(const Request& request, Worker& worker,
                             protocol::PutResultPart&& message) {
  Lease* lease = book_.Find(message.lease);
  if (lease == nullptr || lease->is_shard || lease->worker != worker.id) {
    return barrier_.Refuse(request, NotFound("put result part: the lease is not held"));
  }
  const std::size_t kept = lease->result_parts.size();
  worker.progress_at = event_.now;
  lease->deadline = event_.now + options_.lease_ms;
  // A repeated part is kept once.
  const bool repeated = message.offset < kept;
  if (message.offset > kept) {
    return barrier_.Refuse(request, FailedPrecondition("put result part: one is missing"));
  }
  if (message.bytes.size() > protocol::kMaxInlineResultBytes ||
      kept + message.bytes.size() > protocol::kMaxResultBytes) {
    return barrier_.Refuse(request, InvalidArgument("put result part: the result is too large"));
  }
  if (!repeated) {
    if (const Status fits = CheckBytes("put result part", message.bytes.size()); !fits.ok()) {
      return barrier_.Refuse(request, fits);
    }
    book_.KeepPart(*lease, message.bytes);
  }
  barrier_.Answer(request, protocol::ResultPartKept{lease->result_parts.size()});
}

Status BatchDispatch::JoinParts(protocol::TasksFinished::Item& item) {
  if (item.result_offset == 0) return absl::OkStatus();
  Lease* lease = book_.Find(item.lease);
  if (lease == nullptr || lease->result_parts.size() != item.result_offset) {
    return Unavailable("commit task: ", item.task.ToString(),
                       ": the first parts of its result are lost");
  }
  std::string whole = book_.TakeParts(*lease);
  whole += item.result;
  item.result = std::move(whole);
  item.result_offset = 0;
  return absl::OkStatus();
}

void BatchDispatch::GiveInput(const Request& request, Worker& worker,
                              const protocol::FetchResult& message) {
  for (const LeaseNumber& number : worker.tasks) {
    Lease& lease = book_.At(number);
    if (lease.task.job != message.task.job) continue;
    const Job& job = *table_.Find(lease.task.job);
    const std::vector<std::uint32_t>& on = job.tasks[lease.task.index].spec.depends_on;
    if (std::find(on.begin(), on.end(), message.task.index) == on.end()) continue;
    worker.progress_at = event_.now;
    lease.deadline = event_.now + options_.lease_ms;
    return barrier_.Answer(request,
                           PieceOf(message.task, job.tasks[message.task.index], message.offset));
  }
  barrier_.Refuse(request, NotFound("fetch result: no task that depends on it is held"));
}

}  // namespace patchbay::scheduler
