// Shard leases, from the grant until no process can write under it any more. Private to
// scheduler/core.
#pragma once

#include <cstdint>

#include "scheduler/core/charges.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// Keeps the shard leases of the lease book and the stream book consistent. scheduler/README.md has
/// the phases and their transitions.
///
/// Invariants: a worker holds exactly its leases in phase kMaking; every shard lease points into a
/// trainer's slots, and is removed with the trainer; a shard is leased again only once its lease is
/// resolved.
class ShardLeases {
 public:
  ShardLeases(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
              FairShare& fair, WorkerTable& worker_table, LeaseBook& book, Charges& charges,
              StreamBook& streams)
      : event_(event),
        options_(options),
        barrier_(barrier),
        fair_(fair),
        worker_table_(worker_table),
        book_(book),
        charges_(charges),
        streams_(streams) {}

  AccountId AccountOfStream(JobId job) { return AccountOf(fair_, *barrier_.table().Find(job)); }

  /// The worker may make the shard, which is pending.
  void Grant(Stream& stream, Trainer& trainer, const ShardId& id, Worker& worker);
  /// Null when the lease is not its shard's any more.
  Shard* FindShard(const Lease& lease) { return streams_.FindShard(lease); }
  /// The worker's process has ended: another may be given to the trainers that it made shards for.
  void ForgetMaker(WorkerId worker);
  /// Whether the trainer of the lease is attached and was heard lately.
  bool TrainerTalks(const Lease& lease) const;
  /// The worker reports that it delivered, or that it cannot.
  void Return(Lease& lease, const StageTimes& times);
  /// Voids the lease, and asks the trainer to make sure that no process writes under it. `pid`: the
  /// process on the trainer's host that might, 0 = none.
  void Fence(Lease& lease, std::int64_t pid);
  void SendFence(Lease& lease);
  /// The worker reported a delivery that its trainer has not counted in time.
  void Uncounted(Lease& lease);
  /// Takes the lease from a live worker, which drops it and confirms with ShardsReturned, or ends.
  void TakeBack(Lease& lease);
  /// No process writes under the lease any more: removes it. Its shard is made again unless it
  /// counted. `counted`: under this lease.
  void Resolve(LeaseNumber number, bool counted = false);
  /// The trainer has the shard. `lease`: the lease under which it reports the shard, null = any.
  void Count(Trainer& trainer, const ShardId& id, const LeaseNumber* lease);
  /// The trainer is no more: nor are its leases.
  void Drop(Trainer& trainer);

  /// Its trainer's leases are looked at by that time.
  void LookBy(const Lease& lease, TimeMs at);
  std::uint64_t shards_counted() const { return shards_counted_; }
  std::uint64_t fences() const { return fences_; }
  const DeliveredBytes& delivered() const { return delivered_; }
  Status Check() const;

 private:
  void LeaveWorker(Lease& lease);

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  FairShare& fair_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  Charges& charges_;
  StreamBook& streams_;
  std::uint64_t shards_counted_ = 0, fences_ = 0;
  DeliveredBytes delivered_;
};

}  // namespace patchbay::scheduler
