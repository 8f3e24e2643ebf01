// Tasks that run on lent cores for too long.
#include <algorithm>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/charges.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

/// One at a time, so that no more is handed back than its owner takes: of those that ran for
/// reclaim_after, the one that loses least.
void BatchDispatch::HandBack() {
  const TimeMs after_ms = fair_.reclaim_after_ms();
  if (event_.now - oldest_running_ < after_ms) return;
  std::vector<AccountId> owed;  // looking at their tasks may change the order
  fair_.AnyInOrder([&](AccountId one) {
    if (fair_.IsOwed(one) || fair_.IsShort(one)) owed.push_back(one);
    return owed.size() == kMostLookedAt;
  });
  if (owed.empty()) return;
  std::vector<const Lease*> running;
  oldest_running_ = event_.now;
  for (const Worker& worker : worker_table_.workers()) {
    const Lease* const lease = RunningOn(worker);
    if (lease == nullptr) continue;
    const TimeMs since = std::max(lease->granted_at, worker.work.busy_since);
    oldest_running_ = std::min(oldest_running_, since);
    const bool counts = worker_table_.CanLease(worker) && !worker.RunsSuspect();
    if (counts && event_.now - since >= after_ms) running.push_back(lease);
  }
  std::stable_sort(running.begin(), running.end(),
                   [](const Lease* a, const Lease* b) { return a->granted_at > b->granted_at; });
  const auto wanted = std::find_if(running.begin(), running.end(), [&](const Lease* lease) {
    Worker& worker = worker_table_.at(lease->worker);
    const bool lent = fair_.HoldsLent(lease->account);
    return std::any_of(owed.begin(), owed.end(), [&](AccountId one) {
      return (lent && fair_.IsOwed(one) && BestOf(worker, one) != nullptr) ||
             (fair_.IsShort(one) && BestOf(worker, one, lease) != nullptr);
    });
  });
  if (wanted != running.end()) HandBack(**wanted);
}

void BatchDispatch::HandBack(const Lease& lent) {
  const Lease lease = lent;  // it ends here
  Job& job = *table_.Find(lease.task.job);
  const protocol::TaskSpec& spec = job.tasks[lease.task.index].spec;
  const TimeMs ran_ms = event_.now - lease.granted_at;
  logs_.Add(job.id, StrCat("task ", lease.task.index, " returned after ", ran_ms / 1000,
                           " s, and starts over: its core was lent, and its owner has work"));
  // Neither it nor others of the op are taken for short ones again.
  job.tasks[lease.task.index].returned = true;
  pace_.Measure(spec.op, {1, spec.weight, ran_ms * 1000, lease.estimate_us});
  ++job.tasks_returned;
  ++counts_.returned;
  TakeBackUnstarted(worker_table_.at(lease.worker), 0);
  TakeBack(lease.number);
  worker_table_.Reassign(worker_table_.at(lease.worker));
}

/// The task that the worker's core runs; null when it runs none.
const Lease* BatchDispatch::RunningOn(const Worker& worker) const {
  if (worker.work.tasks == 0) return nullptr;
  const auto runs =
      std::find_if(worker.tasks.begin(), worker.tasks.end(),
                   [&](const LeaseNumber& number) { return !book_.At(number).planning; });
  return runs == worker.tasks.end() ? nullptr : &book_.At(*runs);
}

}  // namespace patchbay::scheduler
