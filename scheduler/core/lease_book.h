// The lease book: every live lease by its number, and the messages about leases to be sent at the
// end of the event. Private to scheduler/core.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/state/lease_table.h"

namespace patchbay::scheduler {

/// Invariants: a number is given once; a lease is filed under its own number; a batch lease is held
/// by its worker, and its task knows it; part_bytes() is the size of the partial results of all
/// leases; no message is pending between events. The dispatch parts decide who may have a lease,
/// and what its end means.
class LeaseBook {
 public:
  LeaseBook(JournalBarrier& barrier, WorkerTable& worker_table)
      : barrier_(barrier), worker_table_(worker_table) {}

  LeaseNumber NextNumber() { return {barrier_.table().incarnation(), ++counter_}; }
  LeaseNumber LastNumber() const { return {barrier_.table().incarnation(), counter_}; }
  /// Null when there is no such lease.
  Lease* Find(const LeaseNumber& number) const { return leases_.Find(number); }
  /// The lease must be in the book.
  Lease& At(const LeaseNumber& number) const { return leases_.At(number); }
  const Lease& Add(Lease&& lease) { return leases_.Add(std::move(lease)); }
  void Erase(const Lease& lease);
  /// The next piece of a result that is too large for one message.
  void KeepPart(Lease& lease, std::string_view bytes);
  /// All pieces of it so far, which the book then no longer has.
  std::string TakeParts(Lease& lease);
  std::uint64_t part_bytes() const { return part_bytes_; }
  const LeaseTable& table() const { return leases_; }
  const LeaseTable::Leases& leases() const { return leases_.all(); }

  /// The worker is told at the end of the event that the lease is void.
  void Revoke(WorkerId worker, const LeaseNumber& number) { revokes_[worker].push_back(number); }
  void Revoke(const Lease& lease) { Revoke(lease.worker, lease.number); }
  /// The worker is told of its lease at the end of the event, or before when the message is full.
  void Grant(WorkerId worker, protocol::TaskLease&& lease, std::size_t bytes);
  void Grant(WorkerId worker, const protocol::ShardLease& lease);
  /// Ends the event.
  void SendCollected();

  Status Check() const;

 private:
  Status CheckTasks(const Worker& worker) const;

  JournalBarrier& barrier_;
  WorkerTable& worker_table_;
  LeaseTable leases_;
  std::uint64_t counter_ = 0;
  std::uint64_t part_bytes_ = 0;  ///< bytes of all leases' result parts
  struct Granted {
    WorkerId worker = kNoWorker;
    std::size_t bytes = 0;  ///< bytes of its tasks
    protocol::LeasesGranted message;
  };
  Granted& GrantedTo(WorkerId worker);
  std::vector<Granted> grants_;          ///< one a worker, in this event
  std::vector<std::uint32_t> place_of_;  ///< by worker: its place there and one; 0: it has none
  std::map<WorkerId, std::vector<LeaseNumber>> revokes_;
};

}  // namespace patchbay::scheduler
