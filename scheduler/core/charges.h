// Charges for the leases that workers had: who pays, for how much, and whether the work counted.
// Private to scheduler/core.
#pragma once

#include <map>

#include "scheduler/core/event_context.h"
#include "scheduler/core/journal_barrier.h"
#include "scheduler/state/job_logs.h"

namespace patchbay::scheduler {

/// A lease is charged once: when its end and its cost are both known, in either order. The cost is
/// lost with a worker that ends before it reports. Charges are journalled about once a second,
/// those of commits with the commit.
///
/// Invariant: leases in `late_` are no longer in the book.
class Charges {
 public:
  Charges(const EventContext& event, JournalBarrier& barrier, JobLogs& logs, FairShare& fair)
      : event_(event), barrier_(barrier), logs_(logs), fair_(fair) {}

  /// The cost that the worker reports for the lease, within the time that its threads had.
  protocol::WorkCost Bounded(Worker& worker, const Lease* lease, const protocol::WorkCost& cost) {
    return Bounded(worker, lease == nullptr ? Ended{} : Ended{*lease}, cost);
  }
  /// The worker's report on a shard; `lease`: null when it has ended.
  void Report(Worker& worker, Lease* lease, const LeaseNumber& number,
              const protocol::WorkCost& cost);
  /// Takes it from the shares of the job's account, whether the work counts or not, but for what it
  /// was charged before.
  void Share(JobId job, const protocol::WorkCost& cost, std::int64_t charged_us = 0);
  /// The lease has ended. `worker`: its holder.
  void End(const Lease& lease, const Worker& worker, bool counted);
  /// The worker has the lease again: its cost is not due for its former end.
  void Forget(WorkerId worker, const LeaseNumber& number);
  void Waste(JobId job, const protocol::WorkCost& cost) { Charge(job, cost, false); }

  /// Journals what is not journalled yet.
  void Write();
  void Tick();

  void On(const Request& request, protocol::FetchUsage&& message);

 private:
  /// A lease that has ended and whose cost is not known yet; by default one of a former scheduler.
  struct Ended {
    Ended() = default;
    explicit Ended(const Lease& lease)
        : job(lease.is_shard ? lease.stream : lease.task.job),
          granted_at(lease.granted_at),
          scheduler(lease.number.incarnation),
          worker(lease.worker_incarnation),
          charged_us(lease.charged_us) {}

    JobId job = 0;
    TimeMs granted_at = 0;
    std::uint32_t scheduler = 0;  ///< incarnation that granted it
    std::uint64_t worker = 0;     ///< incarnation of its holder
    std::int64_t charged_us = 0;  ///< before its end
    bool counted = false;
  };
  protocol::WorkCost Bounded(Worker& worker, const Ended& lease, const protocol::WorkCost& cost);
  void Charge(JobId job, const protocol::WorkCost& cost, bool counted);

  const EventContext& event_;
  JournalBarrier& barrier_;
  JobLogs& logs_;
  FairShare& fair_;
  std::map<WorkerId, std::map<LeaseNumber, Ended>> late_;
  std::map<JobId, scheduler::Charge> unwritten_;
  TimeMs written_at_ = 0;
};

}  // namespace patchbay::scheduler
