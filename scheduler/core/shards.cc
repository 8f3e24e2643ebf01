// Shards: who makes which, and what a returned or void lease means.
#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/core/machine.h"
#include "scheduler/policy/retry.h"

namespace patchbay::scheduler {
namespace {

using protocol::Numerics;
using protocol::Outcome;

Position PositionOf(const ShardId& id) { return {id.epoch, id.batch}; }

bool OfClass(Numerics worker, Numerics stream) {
  return stream == Numerics::kStrict || worker == stream;
}

/// There is a process that may make shards again, whatever keeps it from it now.
bool IsThere(const Worker& worker) {
  return worker.state == WorkerState::kUp || worker.state == WorkerState::kCondemned;
}

/// The node starts workers of that class.
bool Offers(const Node& node, Numerics numerics) {
  return (numerics != Numerics::kCpu && !node.gpus.empty()) ||
         (numerics != Numerics::kCuda && node.cpus != 0);
}

std::string NameOf(Numerics numerics) {
  if (numerics == Numerics::kStrict) return "strict";
  return numerics == Numerics::kCuda ? "cuda" : "cpu";
}

std::string KindOf(Numerics numerics) {
  if (numerics == Numerics::kStrict) return "worker";
  return numerics == Numerics::kCuda ? "GPU worker" : "CPU worker";
}

/// Codes of a shard that say only that this attempt is void, not that the input is bad.
bool IsHarmless(std::int32_t code) {
  const auto status = static_cast<absl::StatusCode>(code);
  return status == absl::StatusCode::kFailedPrecondition ||
         status == absl::StatusCode::kAlreadyExists || status == absl::StatusCode::kCancelled;
}

}  // namespace

Resources ShardNeed(const Worker& worker) {
  return {std::min<std::uint32_t>(worker.capacity.cpu_millis, 1000),
          worker.numerics == Numerics::kCuda ? std::min(worker.capacity.gpus, 1u) : 0, 0};
}

Trainer* Core::Machine::FindTrainer(const RankId& id) {
  const auto stream = streams.find(id.stream);
  if (stream == streams.end()) return nullptr;
  const auto trainer = stream->second.trainers.find(id.rank);
  return trainer == stream->second.trainers.end() ? nullptr : &trainer->second;
}

Shard* Core::Machine::FindShard(const Lease& lease) {
  Trainer* trainer = FindTrainer({lease.stream, lease.shard.rank});
  if (trainer == nullptr) return nullptr;
  const auto filling = trainer->filling.find(PositionOf(lease.shard));
  if (filling == trainer->filling.end()) return nullptr;
  Shard& shard = filling->second.shards[lease.shard.shard];
  return shard.lease == lease.number ? &shard : nullptr;
}

bool Core::Machine::IsLocal(const Worker& worker, const Trainer& trainer) const {
  const std::string& host = nodes.at(worker.node).host_identity;
  return !host.empty() && host == trainer.endpoint.host_identity;
}

/// Grants are cut once no process of a former incarnation can write into this trainer's slots: all
/// are accounted for, or two lease times have passed and none of the missing is on its host. One
/// that registered before its agent did may be on any.
bool Core::Machine::GrantsAllowed(const Trainer& trainer) const {
  if (unaccounted.empty()) return true;
  if (now < recovery_until) return false;
  return std::none_of(unaccounted.begin(), unaccounted.end(), [&](const auto& entry) {
    const std::string& host = entry.second.host_identity;
    return host.empty() || host == trainer.endpoint.host_identity;
  });
}

void Core::Machine::DispatchShards() {
  shards_changed = false;
  std::vector<Stream*> active;
  for (auto& [id, stream] : streams) active.push_back(&stream);
  const auto before = [](const Stream* a, const Stream* b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->leases != b->leases ? a->leases < b->leases : a->job < b->job;
  };
  while (!active.empty()) {
    const auto first = std::min_element(active.begin(), active.end(), before);
    if (!DispatchOneShard(**first)) active.erase(first);
  }
}

/// The lowest shard to make whose slot the trainer has for it; null when there is none.
const PendingShard* Core::Machine::NextPending(const Trainer& trainer) const {
  for (const PendingShard& next : trainer.pending) {
    if (!trainer.slots.at(trainer.filling.at(next.first).slot).rests) return &next;
  }
  return nullptr;
}

/// Leases the stream's lowest shard that someone may make; false when there is none.
bool Core::Machine::DispatchOneShard(Stream& stream) {
  std::vector<Trainer*> waiting;
  for (auto& [rank, trainer] : stream.trainers) {
    // While a shard is unknown, the trainer may yet say that a batch lies in another slot.
    if (trainer.state == TrainerState::kAttached && NextPending(trainer) != nullptr &&
        trainer.unknown.empty() && GrantsAllowed(trainer)) {
      waiting.push_back(&trainer);
    }
  }
  std::stable_sort(waiting.begin(), waiting.end(), [this](const Trainer* a, const Trainer* b) {
    return *NextPending(*a) < *NextPending(*b);
  });
  for (Trainer* trainer : waiting) {
    const auto [at, index] = *NextPending(*trainer);
    const bool solo = trainer->filling.at(at).shards[index].suspect;
    Worker* worker = PickWorker(stream, *trainer, solo);
    if (worker == nullptr) continue;
    const ShardId id{at.epoch, at.batch, trainer->rank, index};
    LeaseShard(stream, *trainer, id, solo ? *worker : Prefer(stream, *trainer, id, *worker));
    return true;
  }
  return false;
}

bool Core::Machine::MayMake(Worker& worker, const Stream& stream, const Trainer& trainer,
                            bool solo) {
  if (!OfClass(worker.numerics, stream.numerics)) return false;
  if (solo && (!worker.tasks.empty() || !worker.shards.empty())) return false;
  if (!IsLocal(worker, trainer) && trainer.endpoint.ucx_address.empty()) return false;
  if (worker.barred.count({stream.job, trainer.rank}) != 0) return false;
  return NodeHasRoom(worker, ShardNeed(worker));
}

/// The least loaded worker that may make the trainer's next shard, on its own host if possible.
Worker* Core::Machine::PickWorker(const Stream& stream, const Trainer& trainer, bool solo) {
  if (solo && reserved != kNoWorker && CanLease(workers[reserved]) &&
      MayMake(workers[reserved], stream, trainer, true)) {
    return &workers[reserved];
  }
  Worker* spare = nullptr;
  const auto look = [&](const std::set<std::pair<std::uint32_t, WorkerId>>& open) -> Worker* {
    for (const auto& [load, id] : open) {
      Worker& worker = workers[id];
      if (MayMake(worker, stream, trainer, solo)) return &worker;
      if (solo && spare == nullptr && MayMake(worker, stream, trainer, false)) spare = &worker;
    }
    return nullptr;
  };
  const auto host = hosts.find(trainer.endpoint.host_identity);
  if (host != hosts.end()) {
    for (const std::string& name : host->second) {
      for (const auto& open : nodes.at(name).shard_open) {
        if (Worker* worker = look(open)) return worker;
      }
    }
  }
  if (!trainer.endpoint.ucx_address.empty()) {
    for (const auto& open : shard_open) {
      if (Worker* worker = look(open)) return worker;
    }
  }
  if (spare != nullptr && reserved == kNoWorker) {
    reserved = spare->id;
    spare->reserved = true;
    Reindex(*spare);
  }
  return nullptr;
}

Worker& Core::Machine::Prefer(Stream& stream, const Trainer& trainer, const ShardId& id,
                              Worker& least) {
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  const std::optional<std::uint64_t> image = stream.images.ImageOf(run.first_ordinal);
  if (!image.has_value()) return least;
  const auto [maker, fresh] = stream.makers.emplace(*image, least.id);
  if (fresh) {
    stream.makers_order.push_back(*image);
    if (stream.makers_order.size() <= kMaxMakersKnown) return least;
    stream.makers.erase(stream.makers_order.front());
    stream.makers_order.pop_front();
    return least;
  }
  Worker& warm = workers[maker->second];
  const bool may = warm.id != least.id && open_keys[warm.id].shard != kNotOpen &&
                   IsLocal(warm, trainer) == IsLocal(least, trainer) &&
                   MayMake(warm, stream, trainer, false) && StaysEvenWith(warm, trainer);
  if (!may) maker->second = least.id;
  return may ? warm : least;
}

/// Whether shards enough wait for those that hold less than the worker.
bool Core::Machine::StaysEvenWith(const Worker& worker, const Trainer& trainer) {
  const auto load = static_cast<std::uint32_t>(worker.shards.size());
  const std::size_t waiting = trainer.pending.size();
  std::vector<std::uint32_t> smaller;
  for (const auto& open : shard_open) {
    for (const auto& [held, id] : open) {
      if (held >= load || smaller.size() >= waiting) break;
      smaller.push_back(held);
    }
  }
  return StaysEven(load, smaller, waiting);
}

void Core::Machine::LeaseShard(Stream& stream, Trainer& trainer, const ShardId& id,
                               Worker& worker) {
  Filling& filling = trainer.filling.at(PositionOf(id));
  Slot& slot = trainer.slots.at(filling.slot);
  Shard& shard = filling.shards[id.shard];
  const PatchRun run = ShardRun(stream.geometry, id.batch, id.rank, id.shard);
  Lease lease;
  lease.number = NextLease();
  lease.worker = worker.id;
  lease.worker_incarnation = worker.incarnation;
  lease.worker_pid = IsLocal(worker, trainer) ? worker.pid : 0;
  lease.granted_at = now;
  lease.deadline = now + options.lease_ms;
  lease.is_shard = true;
  lease.stream = stream.job;
  lease.shard = id;
  lease.grant = {filling.slot, slot.generation, run.offset_bytes,
                 run.count * stream.geometry.patch_bytes};
  trainer.pending.erase({PositionOf(id), id.shard});
  trainer.leases.insert(lease.number);
  shard.state = ShardState::kLeased;
  shard.lease = lease.number;
  ++slot.leases;
  ++stream.leases;
  if (shard.suspect) {
    Unreserve();
    worker.solo = true;
  }
  const bool idle = worker.tasks.empty() && worker.shards.empty();
  if (worker.shards.empty()) worker.shard_since = now;
  worker.next_expiry = idle ? lease.deadline : std::min(worker.next_expiry, lease.deadline);
  worker.shards.insert(lease.number);
  worker.occupancy.Add(ShardNeed(worker));
  grants[worker.id].shards.push_back({lease.number, stream.job, id, run, lease.grant});
  leases.emplace(lease.number, lease);
  Reassign(worker);
}

void Core::Machine::LeaveWorker(Lease& lease) {
  Worker& worker = workers[lease.worker];
  if (worker.shards.erase(lease.number) == 0) return;
  worker.occupancy.Remove(ShardNeed(worker));
  const auto stream = streams.find(lease.stream);
  if (stream != streams.end()) --stream->second.leases;
  shards_changed = true;
  Reassign(worker);
}

void Core::Machine::On(const Request& request, protocol::ShardsReturned&& message) {
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  for (const auto& item : message.items) ReturnShard(*worker, item);
  FinishDrains(*worker);
}

void Core::Machine::ReturnShard(Worker& worker, const protocol::ShardsReturned::Item& item) {
  const auto it = leases.find(item.lease);
  if (it != leases.end() && it->second.worker == worker.id &&
      it->second.worker_incarnation == worker.incarnation &&
      it->second.phase == ShardPhase::kRevoking) {
    return Fence(it->second, 0);
  }
  if (it == leases.end() || !it->second.is_shard || it->second.worker != worker.id ||
      it->second.phase != ShardPhase::kMaking) {
    const auto entry = unaccounted.find({worker.node, worker.index});
    if (entry != unaccounted.end() && entry->second.shards.erase(item.lease) != 0 &&
        entry->second.shards.empty()) {
      AccountFor(entry->first);
    }
    return;
  }
  Lease& lease = it->second;
  worker.progress_at = now;
  if (item.outcome.code == 0) worker.shard_pace.Measure((now - worker.shard_since) * 1000);
  worker.shard_since = now;
  LeaveWorker(lease);
  lease.phase = ShardPhase::kReturned;
  lease.phase_at = now;
  if (item.outcome.code != 0) ShardFailed(item.lease, worker.id, item.outcome);
}

void Core::Machine::ShardFailed(const LeaseNumber& number, WorkerId worker, Outcome outcome) {
  Lease& lease = leases.at(number);
  const JobId stream = lease.stream;
  Trainer* trainer = FindTrainer({stream, lease.shard.rank});
  Shard* shard = FindShard(lease);
  bool fatal = !IsRetryable(outcome.code) && !IsHarmless(outcome.code);
  if (outcome.code == static_cast<std::int32_t>(absl::StatusCode::kUnavailable)) {
    workers[worker].barred[{stream, lease.shard.rank}] = now + options.bar_ms;
    if (trainer != nullptr) {
      if (trainer->failing_since == 0) trainer->failing_since = now;
      fatal = now - trainer->failing_since > 2 * options.no_worker_ms;
    }
  } else if (shard != nullptr && !IsHarmless(outcome.code)) {
    fatal = fatal || ++shard->attempts >= kMaxShardAttempts;
  }
  if (fatal) {
    outcome.message = StrCat("make shard ", lease.shard.ToString(), ": ", outcome.message);
    return EndStream(stream, JobState::kFailed, std::move(outcome));
  }
  Fence(lease, 0);
}

/// Takes the lease from a worker that lives: it drops it and says so with ShardsReturned, or ends.
void Core::Machine::TakeBack(Lease& lease) {
  Revoke(lease);
  LeaveWorker(lease);
  lease.phase = ShardPhase::kRevoking;
  lease.phase_at = now;
}

void Core::Machine::TickRevoking(Lease& lease) {
  if (lease.phase != ShardPhase::kRevoking) return;
  Worker& worker = workers[lease.worker];
  const bool lives = worker.incarnation == lease.worker_incarnation &&
                     (worker.state == WorkerState::kUp || worker.state == WorkerState::kDraining);
  if (lives && now - lease.phase_at < options.lease_ms) return;
  if (lives) Condemn(worker);
  Fence(lease, lease.worker_pid);
}

void Core::Machine::Fence(Lease& lease, std::int64_t pid) {
  if (lease.phase == ShardPhase::kMaking) LeaveWorker(lease);
  lease.phase = ShardPhase::kFencing;
  lease.worker_pid = pid;
  SendFence(lease);
}

void Core::Machine::SendFence(Lease& lease) {
  lease.phase_at = now;
  const Trainer* trainer = FindTrainer({lease.stream, lease.shard.rank});
  if (trainer == nullptr || trainer->state == TrainerState::kForgotten) return;
  Send(
      trainer->peer, 0,
      protocol::FenceShard{lease.stream, lease.number, lease.shard, lease.worker_pid, lease.grant});
}

void Core::Machine::Resolve(LeaseNumber number) {
  const auto it = leases.find(number);
  if (it == leases.end()) return;
  if (it->second.phase == ShardPhase::kMaking) LeaveWorker(it->second);
  Shard* shard = FindShard(it->second);
  const Lease lease = it->second;
  leases.erase(it);
  Trainer* trainer = FindTrainer({lease.stream, lease.shard.rank});
  if (trainer == nullptr) return;
  trainer->leases.erase(number);
  const auto slot = trainer->slots.find(lease.grant.slot);
  if (slot != trainer->slots.end()) --slot->second.leases;
  FreeSlotIfClear(*trainer, lease.grant.slot);
  shards_changed = true;
  if (shard == nullptr || shard->state != ShardState::kLeased) {
    return LeaveRestingIfClear(*trainer, lease.grant.slot);
  }
  shard->lease = {};
  shard->state = ShardState::kPending;
  trainer->pending.insert({PositionOf(lease.shard), lease.shard.shard});
  const bool poisonous = shard->solo_deaths >= kMaxSoloDeaths;
  LeaveRestingIfClear(*trainer, lease.grant.slot);
  if (!poisonous) return;
  ending.push_back(
      {lease.stream,
       JobState::kFailed,
       {static_cast<std::int32_t>(absl::StatusCode::kInternal),
        StrCat("make shard ", lease.shard.ToString(), ": ended ", kMaxSoloDeaths, " workers")}});
}

/// A trainer waits for shards, and no worker there is of the stream's class and can reach it.
bool Core::Machine::IsStarved(const Stream& stream) const {
  const auto could = [&](const Trainer& trainer) {
    return std::any_of(workers.begin(), workers.end(), [&](const Worker& worker) {
      return IsThere(worker) && OfClass(worker.numerics, stream.numerics) &&
             (IsLocal(worker, trainer) || !trainer.endpoint.ucx_address.empty());
    });
  };
  return std::any_of(stream.trainers.begin(), stream.trainers.end(), [&](const auto& entry) {
    const Trainer& trainer = entry.second;
    return trainer.state == TrainerState::kAttached && !trainer.pending.empty() && !could(trainer);
  });
}

/// The nodes are known, and none of them starts workers of that class.
bool Core::Machine::NoNodeOffers(Numerics numerics) const {
  if (had_workers && now < recovery_until) return false;  // nodes may still be coming back
  bool any_node = false;
  for (const auto& [name, node] : nodes) {
    if (!node.registered) continue;
    if (Offers(node, numerics)) return false;
    any_node = true;
  }
  return any_node;
}

/// What the user of a starved stream can do something about.
Status Core::Machine::WhyStarved(const Stream& stream) const {
  const std::string kind = KindOf(stream.numerics);
  const auto fits = [&](const Worker& worker) {
    return IsThere(worker) && OfClass(worker.numerics, stream.numerics);
  };
  if (std::any_of(workers.begin(), workers.end(), fits)) {
    return absl::UnavailableError(StrCat(
        "make shards: the ", kind, "s are on other nodes than the trainer, and no data policy says",
        " how batches may travel"));
  }
  for (const auto& [name, node] : nodes) {
    const bool silent = node.agent_incarnation != 0 && now - node.last_seen >= options.suspect_ms;
    if (!silent || !Offers(node, stream.numerics)) continue;
    return absl::UnavailableError(StrCat("make shards: no ", kind, " is left: node ", name,
                                         " has not answered for ", (now - node.last_seen) / 1000,
                                         " s"));
  }
  if (NoNodeOffers(stream.numerics)) {
    return absl::FailedPreconditionError(
        StrCat("make shards: numerics ", NameOf(stream.numerics), ": the cluster has no ", kind));
  }
  return absl::UnavailableError(StrCat("make shards: no ", kind, " has been running for ",
                                       (now - stream.starved_since) / 1000,
                                       " s; the nodes' logs say why"));
}

/// A stream that waits for workers which do not exist ends after a while, and says so.
void Core::Machine::CheckStarved(Stream& stream) {
  if (!IsStarved(stream)) {
    stream.starved_since = 0;
    return;
  }
  if (stream.starved_since == 0) stream.starved_since = now;
  const TimeMs grace = NoNodeOffers(stream.numerics) ? options.suspect_ms : options.no_worker_ms;
  if (now - stream.starved_since < grace) return;
  const Status why = WhyStarved(stream);
  EndStream(stream.job, JobState::kFailed,
            {static_cast<std::int32_t>(why.code()), std::string(MessageOf(why))});
}

}  // namespace patchbay::scheduler
