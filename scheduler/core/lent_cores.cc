// Tasks that run for long: what they are charged meanwhile, and when they leave lent cores.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/charges.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void BatchDispatch::Renew(Worker& worker, Lease& lease, std::int64_t cpu_us) {
  if (lease.account == kNoAccount || cpu_us <= 0) return;
  const std::int64_t bounded_us = charges_.Bounded(worker, &lease, {cpu_us, 0, 0, 0}).cpu_us;
  if (!running_.insert(lease.number).second) return lease.running.Report(event_.now, bounded_us);
  if (lease.number.incarnation == table_.incarnation()) {
    lease.running = RunningCost(std::max(lease.granted_at, worker.work.busy_since));
    return lease.running.Report(event_.now, bounded_us);
  }
  lease.charged_us = bounded_us;  // a former scheduler's task is not charged for its past
  lease.running = RunningCost(event_.now, bounded_us);
}

void BatchDispatch::FollowRunning() {
  std::erase_if(running_, [&](const LeaseNumber& number) {
    Lease* const lease = book_.Find(number);
    if (lease == nullptr) return true;
    FreeThoseBehind(*lease);
    fair_.Refund(lease->account, std::exchange(lease->estimate_us, 0));
    const std::int64_t cost_us = lease->running.By(event_.now + kChargeAheadMs);
    fair_.Charge(lease->account, cost_us - std::exchange(lease->charged_us, cost_us));
    return false;
  });
}

/// Tasks that were given to its worker in advance, as it was thought to be short, go elsewhere.
void BatchDispatch::FreeThoseBehind(Lease& lease) {
  Worker& worker = worker_table_.at(lease.worker);
  const TimeMs ran_ms = event_.now - std::max(lease.granted_at, worker.work.busy_since);
  if (ran_ms < kLongRunMs) return;
  const std::int64_t more_us = std::max<std::int64_t>(ran_ms * 1000 - lease.queued_us, 0);
  lease.queued_us += more_us;
  worker.work.queued_us += more_us;
  if (worker.work.tasks > 1) return TakeBackUnstarted(worker, 0);
  if (worker_table_.IsOpenForTasks(worker.id)) worker_table_.Reassign(worker);
}

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
  if (owed.empty() && !fair_.AnyStalls()) return;
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
  const Lease* lease = LeaseForTasks(running, owed);
  if (lease == nullptr) lease = LeaseForShards(running);
  if (lease != nullptr) HandBack(*lease);
}

/// On a core for which an account of a team that has less than its share has a task.
const Lease* BatchDispatch::LeaseForTasks(const std::vector<const Lease*>& running,
                                          const std::vector<AccountId>& owed) {
  const auto wanted = std::find_if(running.begin(), running.end(), [&](const Lease* lease) {
    Worker& worker = worker_table_.at(lease->worker);
    const bool lent = fair_.HoldsLent(lease->account);
    return std::any_of(owed.begin(), owed.end(), [&](AccountId one) {
      return (lent && fair_.IsOwed(one) && BestOf(worker, one) != nullptr) ||
             (fair_.IsShort(one) && BestOf(worker, one, lease) != nullptr);
    });
  });
  return wanted == running.end() ? nullptr : *wanted;
}

/// On a core that it shares with the shards of a team that has less than its share by such cores.
const Lease* BatchDispatch::LeaseForShards(const std::vector<const Lease*>& running) {
  if (running.empty() || !fair_.AnyStalls()) return nullptr;
  std::map<std::uint32_t, std::uint64_t> has;  // thousandths of cores, by team
  for (const Worker& worker : worker_table_.workers()) {
    const Lease* const task = RunningOn(worker);
    std::uint64_t parts = task == nullptr ? 0 : 1;
    for (const Holders::Entry& entry : worker.holders.entries()) parts += entry.shards == 0 ? 0 : 1;
    const std::uint64_t part = worker.capacity.cpu_millis / std::max<std::uint64_t>(parts, 1);
    if (task != nullptr) has[fair_.TeamIdOf(task->account)] += part;
    for (const Holders::Entry& entry : worker.holders.entries()) {
      if (entry.shards != 0) has[fair_.TeamIdOf(entry.account)] += part;
    }
  }
  std::set<std::uint32_t> beyond, squeezed;
  for (const auto& [team, millis] : has) {
    if (fair_.HasBeyond(team, millis)) beyond.insert(team);
    if (fair_.IsSqueezed(team, millis)) squeezed.insert(team);
  }
  const auto is_squeezed = [&](const Holders::Entry& entry) {
    return entry.shards != 0 && squeezed.count(fair_.TeamIdOf(entry.account)) != 0;
  };
  const auto wanted = std::find_if(running.begin(), running.end(), [&](const Lease* lease) {
    const auto& holders = worker_table_.at(lease->worker).holders.entries();
    return beyond.count(fair_.TeamIdOf(lease->account)) != 0 &&
           std::any_of(holders.begin(), holders.end(), is_squeezed);
  });
  return wanted == running.end() ? nullptr : *wanted;
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
  const std::int64_t cpu_us = std::max(lease.estimate_us, lease.charged_us);
  pace_.Measure(spec.op, {1, spec.weight, ran_ms * 1000, cpu_us});
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
