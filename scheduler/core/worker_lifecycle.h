// The end of workers: expired leases, deaths, drains, and the consequences for their leases.
// Private to scheduler/core.
#pragma once

#include <set>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/recovery.h"
#include "scheduler/core/shard_leases.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/policy/solo_deaths.h"

namespace patchbay::scheduler {

/// Invariants: a condemned or dead worker holds no lease; a condemned one is killed repeatedly
/// until its end is proven; a death counts against a task that ran alone, and makes tasks that ran
/// together suspects, only those of the lane at fault if it is known.
class WorkerLifecycle {
 public:
  WorkerLifecycle(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
                  WorkerTable& worker_table, LeaseBook& book, Recovery& recovery,
                  BatchDispatch& batch, ShardLeases& shards)
      : event_(event),
        options_(options),
        barrier_(barrier),
        worker_table_(worker_table),
        book_(book),
        recovery_(recovery),
        batch_(batch),
        shards_(shards) {}

  /// The process has ended: its work is done again. `suspects`: the lane at fault.
  void Dead(Worker& worker, WorkerEnd end, SuspectLane suspects = SuspectLane::kAny);
  /// A lease of it is void although it lives: it is to be killed.
  void Condemn(Worker& worker) { Condemn(worker, SuspectLane::kAny); }
  /// Takes back leases that the worker did not name when it registered again. It may hold them all
  /// the same: they were on the way to it.
  void TakeUnnamed(Worker& worker, const std::set<LeaseNumber>& named);
  /// Answers Drain once nothing is held any more.
  void FinishDrains(Worker& worker);
  void FinishNodeDrain(Node& node);
  /// Expires leases, repeats kills, forgets nodes that are silent for long.
  void Tick();

  std::uint64_t leases_expired() const { return leases_expired_; }
  Status Check() const;

 private:
  void Condemn(Worker& worker, SuspectLane suspects);
  void Blame(Worker& worker, WorkerEnd end, SuspectLane suspects);
  TimeMs NextLook(const Worker& worker) const;
  void ExpireLeases(Worker& worker);
  void TakeFromLost(Worker& worker);
  TimeMs ExpiryOf(const Worker& worker, const LeaseNumber& number) const;
  void SendKill(Worker& worker);

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  Recovery& recovery_;
  BatchDispatch& batch_;
  ShardLeases& shards_;
  std::uint64_t leases_expired_ = 0;
};

}  // namespace patchbay::scheduler
