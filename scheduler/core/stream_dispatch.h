// Stream dispatch: who makes which shard, and whether anybody can. Private to scheduler/core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/recovery.h"
#include "scheduler/core/shard_leases.h"
#include "scheduler/state/stream_order.h"

namespace patchbay::scheduler {

/// Whether the worker's shards have the bytes of the stream's plan.
bool MakesItsBytes(const Worker& worker, const Stream& stream);

/// Only chooses shards and workers; ShardLeases grants the leases. A stream for whose shards there
/// is no worker is refused: until the next tick it is offered only workers that became freer, so
/// that an event costs what it changed.
///
/// Invariants: a shard goes to a worker of its stream's class that can reach the trainer and was
/// not barred from it; the lowest batch first; a suspect alone or beside planning; no lease for a
/// silent trainer, into a resting slot, or while processes of a former scheduler may still write
/// there. A worker runs a task and makes shards at the same time on the same core, so an account
/// gets no shards on a worker that runs a task of an account behind it, or is about to.
class StreamDispatch {
 public:
  StreamDispatch(const EventContext& event, const CoreOptions& options, FairShare& fair,
                 WorkerTable& worker_table, Recovery& recovery, BatchDispatch& batch,
                 StreamBook& streams, ShardLeases& shards)
      : event_(event),
        options_(options),
        fair_(fair),
        worker_table_(worker_table),
        recovery_(recovery),
        batch_(batch),
        streams_(streams),
        shards_(shards),
        order_(fair) {}

  /// Leases shards to workers that have room: streams by the shares of teams and users; of one user
  /// by priority, then by who has least, then by who was given one longest ago.
  void Dispatch();
  /// Whether the worker makes the stream's bytes and can deliver them.
  bool Suits(const Worker& worker, const Stream& stream, const Trainer& trainer) const;
  /// Whether one of these workers, which suit the stream, makes a shard of the trainer after the
  /// next tick, if no other stream takes it: refused until then, and kept for tasks until then, do
  /// not count.
  bool StartsAtTick(const Stream& stream, const Trainer& trainer,
                    const std::vector<Worker*>& workers);
  /// Names the processes that must return, or end, before the stream continues; empty when none can
  /// be named.
  std::string WaitsFor(const Stream& stream) const;
  /// Counts the stall. A team whose trainer waits may have less than its share.
  void TickStall(Stream& stream) {
    if (stream.LookForStall(event_.now)) fair_.Stall(stream.account);
  }
  /// Why the stream has waited too long for workers that do not exist; nothing while it has not.
  std::optional<Status> TickStarved(Stream& stream);

 private:
  enum class Tried : std::uint8_t { kNone, kWithheld, kGranted };

  void ReleaseKept(bool all);
  bool ServeFreed(Worker& worker);
  bool ServeAll();
  bool AnyMayBeOpen(const Stream& stream) const;
  /// Leases the stream's lowest shard that `only`, or where that is null any worker, may make.
  Tried DispatchOne(WantingStream& wanting, Worker* only);
  static bool Joins(const Worker& worker, const Trainer& trainer);
  const PendingShard* NextPending(const Trainer& trainer) const;
  Worker* PickWorker(WantingStream& wanting, const Trainer& trainer, const Shard& shard);
  template <typename May>
  Worker* PickRemote(WantingStream& wanting, const Trainer& trainer, std::size_t numerics,
                     const May& may);
  /// The worker that made the image's last shard, if it may take one more; else `least`.
  Worker& Prefer(Stream& stream, const Trainer& trainer, const ShardId& id, Worker& least);
  bool StaysEvenWith(const Worker& worker, const Trainer& trainer) const;
  /// But for what its account is due.
  bool CouldMake(Worker& worker, const Stream& stream, const Trainer& trainer, bool solo);
  bool MayMake(Worker& worker, const Stream& stream, const Trainer& trainer, bool solo);
  bool IsWithheld(Worker& worker, AccountId account);
  bool RunsTaskBehind(const Worker& worker, AccountId account) const;
  std::size_t MostKept() const;
  bool IsKeptApart(const Worker& worker, const Stream& stream, const Trainer& trainer) const;
  template <typename Counts>
  bool IsStarved(const Stream& stream, const Counts& counts) const;
  const std::string* SilentNode(const Stream& stream) const;
  bool NoNodeOffers(const Stream& stream) const;
  Status WhyStarved(const Stream& stream) const;

  const EventContext& event_;
  const CoreOptions& options_;
  FairShare& fair_;
  WorkerTable& worker_table_;
  Recovery& recovery_;
  BatchDispatch& batch_;
  StreamBook& streams_;
  ShardLeases& shards_;
  StreamOrder order_;
  std::size_t looks_left_ = 0;  ///< until the next tick
};

}  // namespace patchbay::scheduler
