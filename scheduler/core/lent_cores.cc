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
  std::vector<const Lease*> running;
  for (const Worker& worker : worker_table_.workers()) {
    const Lease* lease = RunningFor(worker, fair_.reclaim_after_ms());
    if (lease != nullptr) running.push_back(lease);
  }
  if (running.empty()) return;
  std::vector<AccountId> owed;  // looking at their tasks may change the order
  fair_.AnyInOrder([&](AccountId one) {
    if (fair_.IsOwed(one)) owed.push_back(one);
    return owed.size() == kMostLookedAt;
  });
  if (owed.empty()) return;
  std::stable_sort(running.begin(), running.end(),
                   [](const Lease* a, const Lease* b) { return a->granted_at > b->granted_at; });
  const auto wanted = std::find_if(running.begin(), running.end(), [&](const Lease* lease) {
    Worker& worker = worker_table_.at(lease->worker);
    return fair_.HoldsLent(lease->account) &&
           std::any_of(owed.begin(), owed.end(),
                       [&](AccountId one) { return BestOf(worker, one) != nullptr; });
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
  TakeBackUnstarted(worker_table_.at(lease.worker), 0);
  TakeBack(lease.number);
  worker_table_.Reassign(worker_table_.at(lease.worker));
}

/// The task that the worker's core runs, if it has run for so long.
const Lease* BatchDispatch::RunningFor(const Worker& worker, TimeMs ms) const {
  if (worker.work.tasks == 0 || event_.now - worker.work.busy_since < ms) return nullptr;
  if (!worker_table_.CanLease(worker) || worker.RunsSuspect()) return nullptr;
  for (const LeaseNumber& number : worker.tasks) {
    const Lease& lease = book_.At(number);
    if (lease.planning) continue;
    return event_.now - lease.granted_at < ms ? nullptr : &lease;
  }
  return nullptr;
}

}  // namespace patchbay::scheduler
