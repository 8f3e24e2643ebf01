#include "scheduler/core/shard_leases.h"

#include <algorithm>
#include <utility>

#include "scheduler/core/trainer_slots.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void ShardLeases::Grant(Stream& stream, Trainer& trainer, const ShardId& id, Worker& worker) {
  Filling& filling = trainer.filling.at(PositionOf(id));
  Slot& slot = trainer.slots.at(filling.slot);
  Shard& shard = filling.shards[id.shard];
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  Lease lease;
  lease.number = book_.NextNumber();
  lease.worker = worker.id;
  lease.worker_incarnation = worker.incarnation;
  lease.worker_pid = worker_table_.IsLocal(worker, trainer.endpoint) ? worker.pid : 0;
  lease.granted_at = event_.now;
  lease.deadline = event_.now + options_.lease_ms;
  lease.is_shard = true;
  lease.account = stream.account;
  lease.estimate_us = stream.shard_us;
  lease.stream = stream.job;
  lease.shard = id;
  lease.grant = {filling.slot, slot.generation, run.place, run.count};
  trainer.pending.erase({PositionOf(id), id.shard});
  trainer.leases.insert(lease.number);
  trainer.makers.Insert(worker.id);
  shard.state = ShardState::kLeased;
  shard.lease = lease.number;
  ++slot.leases;
  ++stream.leases;
  stream.last_lease = lease.number;
  if (shard.suspect) {
    worker_table_.Unreserve(worker);
    worker.suspect = lease.number;
  }
  const bool idle = worker.tasks.empty() && worker.shards.empty();
  if (worker.shards.empty()) worker.shard_since = event_.now;
  worker.next_expiry = idle ? lease.deadline : std::min(worker.next_expiry, lease.deadline);
  worker_table_.LookBy(worker.id, worker.next_expiry);
  worker.shards.insert(lease.number);
  worker.work.occupancy.Add(ShardNeed(worker));
  fair_.Grant(lease.account, lease.estimate_us, WorkKind::kShards);
  worker.holders.Add(lease.account, ShardNeed(worker), true, fair_);
  book_.Grant(worker.id,
              protocol::ShardLease{lease.number, stream.job, id, run.first_ordinal, lease.grant});
  book_.Add(std::move(lease));
  worker_table_.Reassign(worker);
}

void ShardLeases::ForgetMaker(WorkerId worker) {
  bool makes_room = false;
  for (auto& [id, stream] : streams_.streams()) {
    for (auto& [rank, trainer] : stream.trainers) {
      const bool was_full = trainer.makers.size() >= kMaxRingHolders;
      makes_room = (trainer.makers.Erase(worker) && was_full) || makes_room;
    }
  }
  if (makes_room) streams_.MarkAllChanged();
}

bool ShardLeases::TrainerTalks(const Lease& lease) const {
  const Trainer* trainer = streams_.Find(RankId{lease.stream, lease.shard.rank});
  return trainer != nullptr && trainer->state == TrainerState::kAttached;
}

void ShardLeases::LeaveWorker(Lease& lease) {
  Worker& worker = worker_table_.at(lease.worker);
  if (worker.shards.erase(lease.number) == 0) return;
  if (worker.suspect == lease.number) worker.suspect = {};
  worker.work.occupancy.Remove(ShardNeed(worker));
  fair_.Refund(lease.account, lease.estimate_us, WorkKind::kShards);
  worker.holders.Remove(lease.account, true, fair_);
  if (Stream* stream = streams_.Find(lease.stream); stream != nullptr) --stream->leases;
  streams_.MarkChanged(lease.stream);
  worker_table_.Reassign(worker);
}

/// Takes the lease from a live worker, which drops it and confirms with ShardsReturned, or ends.
void ShardLeases::TakeBack(Lease& lease) {
  book_.Revoke(lease);
  LeaveWorker(lease);
  lease.phase = ShardPhase::kRevoking;
  lease.phase_at = lease.revoke_sent = event_.now;
  LookBy(lease, event_.now);
}

void ShardLeases::LookBy(const Lease& lease, TimeMs at) {
  Trainer* const trainer = streams_.Find(RankId{lease.stream, lease.shard.rank});
  if (trainer != nullptr) trainer->leases_due = std::min(trainer->leases_due, at);
}

void ShardLeases::Fence(Lease& lease, std::int64_t pid) {
  if (lease.phase == ShardPhase::kMaking) LeaveWorker(lease);
  lease.phase = ShardPhase::kFencing;
  lease.worker_pid = pid;
  ++fences_;
  SendFence(lease);
}

void ShardLeases::SendFence(Lease& lease) {
  lease.phase_at = event_.now;
  LookBy(lease, event_.now + options_.resend_ms);
  const Trainer* trainer = streams_.Find(RankId{lease.stream, lease.shard.rank});
  if (trainer == nullptr || trainer->state == TrainerState::kForgotten) return;
  barrier_.Send(
      trainer->peer, 0,
      protocol::FenceShard{lease.stream, lease.number, lease.shard, lease.worker_pid, lease.grant});
}

void ShardLeases::Resolve(LeaseNumber number, bool counted) {
  Lease* found = book_.Find(number);
  if (found == nullptr) return;
  if (found->phase == ShardPhase::kMaking) LeaveWorker(*found);
  Shard* shard = FindShard(*found);
  const JobId job = found->stream;
  const ShardId id = found->shard;
  const std::uint32_t at = found->grant.slot;
  charges_.End(*found, worker_table_.at(found->worker), counted);
  book_.Erase(*found);
  Trainer* trainer = streams_.Find(RankId{job, id.rank});
  if (trainer == nullptr) return;
  trainer->leases.erase(number);
  const auto slot = trainer->slots.find(at);
  if (slot != trainer->slots.end()) --slot->second.leases;
  FreeSlotIfClear(*trainer, at);
  streams_.MarkChanged(job);
  if (shard == nullptr || shard->state != ShardState::kLeased) {
    return LeaveRestingIfClear(*trainer, at);
  }
  shard->lease = {};
  shard->state = ShardState::kPending;
  trainer->pending.insert({PositionOf(id), id.shard});
  const SoloDeaths deaths = shard->solo_deaths;
  LeaveRestingIfClear(*trainer, at);
  if (!deaths.TooMany()) return;
  streams_.EndLater(
      {job, JobState::kFailed,
       OutcomeOf(Internal("make shard ", id.ToString(), ": ended ", deaths.total(), " workers")),
       id});
}

void ShardLeases::Count(Trainer& trainer, const ShardId& id, const LeaseNumber* lease) {
  const auto it = trainer.filling.find(PositionOf(id));
  if (it == trainer.filling.end() || id.shard >= it->second.shards.size()) return;
  Filling& filling = it->second;
  Shard& shard = filling.shards[id.shard];
  if (shard.state == ShardState::kCounted) return;
  const LeaseNumber live = shard.state == ShardState::kLeased ? shard.lease : LeaseNumber{};
  if (shard.state == ShardState::kPending) trainer.pending.erase({it->first, id.shard});
  if (shard.state == ShardState::kUnknown) trainer.unknown.erase(id);
  trainer.failing_since = 0;
  shard.state = ShardState::kCounted;
  shard.lease = {};
  ++shards_counted_;
  Stream& stream = *streams_.Find(trainer.stream);
  stream.patches_made += ShardRun(stream.geometry, id.batch, id.rank, id.shard).count;
  const std::uint32_t slot = filling.slot;
  if (++filling.counted == filling.shards.size()) {
    trainer.slots.at(slot).state = protocol::SlotState::kFull;
    trainer.filling.erase(it);
  }
  if (live == LeaseNumber{}) return;
  Lease& held = book_.At(live);
  if (lease == nullptr || *lease == live) {
    ++worker_table_.at(held.worker).shards_done;
    Resolve(live, true);
  } else if (held.phase != ShardPhase::kFencing) {
    if (held.phase == ShardPhase::kMaking) TakeBack(held);
    if (held.phase == ShardPhase::kReturned) Fence(held, 0);
  }
}

void ShardLeases::Return(Lease& lease, const StageTimes& times) {
  LeaveWorker(lease);
  Stream* const stream = streams_.Find(lease.stream);
  if (stream != nullptr) {
    stream->past.AddShard(worker_table_.at(lease.worker).node, times, lease.grant.count);
  }
  const Trainer* const trainer = streams_.Find(RankId{lease.stream, lease.shard.rank});
  if (trainer != nullptr && lease.cost) {
    const bool ucx = trainer->endpoint.remote_address.starts_with("ucx://");
    (lease.worker_pid != 0 ? delivered_.mapped
     : ucx                 ? delivered_.ucx
                           : delivered_.tls) += lease.cost->bytes_delivered;
  }
  if (stream != nullptr && lease.cost) {
    const std::int64_t cost_us = lease.cost->cpu_us;
    stream->shard_us += stream->shard_us == 0 ? cost_us : (cost_us - stream->shard_us) / 8;
  }
  lease.phase = ShardPhase::kReturned;
  lease.phase_at = event_.now;
  LookBy(lease, event_.now + options_.count_wait_ms);
}

void ShardLeases::Uncounted(Lease& lease) {
  Shard* shard = FindShard(lease);
  const bool wanted = shard != nullptr && shard->state == ShardState::kLeased;
  if (wanted && ++shard->attempts >= kMaxShardAttempts) {
    streams_.EndLater(
        {lease.stream, JobState::kFailed,
         OutcomeOf(Internal("make shard ", lease.shard.ToString(), ": it was delivered, and rank ",
                            lease.shard.rank, " did not count it, at the last of ",
                            kMaxShardAttempts, " attempts")),
         lease.shard});
  }
  Fence(lease, 0);
}

void ShardLeases::Drop(Trainer& trainer) {
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = book_.At(number);
    if (lease.phase == ShardPhase::kMaking) {
      book_.Revoke(lease);
      LeaveWorker(lease);
    }
    charges_.End(lease, worker_table_.at(lease.worker), false);
    book_.Erase(lease);
  }
  streams_.MarkChanged(trainer.stream);
}

}  // namespace patchbay::scheduler
