// Shard leases: from the grant until nobody can write under it any more. Private to scheduler/core.
#pragma once

#include <cstdint>

#include "scheduler/core/lease_book.h"
#include "scheduler/core/stream_book.h"
#include "scheduler/core/worker_table.h"

namespace patchbay::scheduler {

/// Moves the shard leases of the lease book and the stream book together. Phases and who moves
/// them: scheduler/README.md.
///
/// Invariants: a lease in phase kMaking is among its worker's, one in another phase is not; every
/// shard lease points into a trainer's slots, and goes with the trainer; a shard is leased again
/// only once its lease is resolved.
class ShardLeases {
 public:
  ShardLeases(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
              WorkerTable& worker_table, LeaseBook& book, StreamBook& streams)
      : event_(event),
        options_(options),
        barrier_(barrier),
        worker_table_(worker_table),
        book_(book),
        streams_(streams) {}

  /// The worker may make the shard, which is pending.
  void Grant(Stream& stream, Trainer& trainer, const ShardId& id, Worker& worker);
  /// Null when the lease is not its shard's any more.
  Shard* FindShard(const Lease& lease) { return streams_.FindShard(lease); }
  /// Its trainer is attached and was heard lately.
  bool TrainerTalks(const Lease& lease) const;
  /// The worker says it delivered, or that it cannot.
  void Return(Lease& lease);
  /// The lease is void: the trainer is asked to make sure that nobody writes under it. `pid` = who
  /// might on the trainer's host, 0 = nobody.
  void Fence(Lease& lease, std::int64_t pid);
  void SendFence(Lease& lease);
  /// Takes the lease from a worker that lives: it drops it and says so with ShardsReturned, or
  /// ends.
  void TakeBack(Lease& lease);
  /// Nobody writes under the lease any more: it is gone, and its shard is to be made again unless
  /// it counted.
  void Resolve(LeaseNumber number);
  /// The trainer has the shard; `lease` = under which lease it says so, null = all it takes.
  void Count(Trainer& trainer, const ShardId& id, const LeaseNumber* lease);
  /// The trainer is no more: nor are its leases.
  void Drop(Trainer& trainer);

  std::uint64_t shards_counted() const { return shards_counted_; }
  Status Check() const;

 private:
  void LeaveWorker(Lease& lease);

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  StreamBook& streams_;
  std::uint64_t shards_counted_ = 0;
};

}  // namespace patchbay::scheduler
