// Trainers: attaching and leaving, shards counted and fenced.
#include <algorithm>
#include <utility>

#include "runtime/base/host_identity.h"
#include "scheduler/core/machine.h"

namespace patchbay::scheduler {

using protocol::Outcome;
using protocol::SlotRow;
using protocol::SlotState;

namespace {

Outcome ToOutcome(const Status& status) {
  return {static_cast<std::int32_t>(status.code()), std::string(MessageOf(status))};
}

Position PositionOf(const ShardId& id) { return {id.epoch, id.batch}; }

}  // namespace

/// The attached trainer that this connection is; null, and refused, when it is none.
Trainer* Core::Machine::TrainerOf(const Request& request, JobId stream, std::uint32_t rank) {
  Trainer* trainer = FindTrainer({stream, rank});
  if (trainer == nullptr || trainer->peer != request.peer ||
      trainer->state == TrainerState::kForgotten) {
    Refuse(request, absl::FailedPreconditionError("receive message: attach to the stream first"));
    return nullptr;
  }
  trainer->last_seen = now;
  if (trainer->state == TrainerState::kSuspended) trainer->state = TrainerState::kAttached;
  return trainer;
}

StatusOr<Stream*> Core::Machine::OpenStream(JobId id) {
  const Job* job = table.Find(id);
  if (job == nullptr || !job->IsStream()) {
    return absl::NotFoundError(StrCat("open stream: ", id, ": there is no such stream job"));
  }
  if (IsEnded(job->state)) {
    return absl::FailedPreconditionError(StrCat("open stream: ", id, ": the job has ended"));
  }
  if (job->tasks[0].state != TaskState::kDone) {
    return absl::UnavailableError(StrCat("open stream: ", id, ": its plan is not ready yet"));
  }
  const auto it = streams.find(id);
  if (it != streams.end()) return &it->second;
  Stream stream;
  stream.job = id;
  stream.priority = job->priority;
  stream.empty_since = now;
  Status status = ReadStreamPlan(job->tasks[0].result, job->world_size, stream);
  if (status.ok() && streams.size() >= kMaxStreams) {
    status = absl::ResourceExhaustedError(StrCat("open stream: ", id, ": too many streams"));
  }
  if (!status.ok()) {
    EndStream(id, JobState::kFailed, ToOutcome(status));
    return status;
  }
  return &streams.emplace(id, std::move(stream)).first->second;
}

Status Core::Machine::CheckAttach(const Request& request, const protocol::AttachTrainer& message,
                                  const Stream& stream) {
  const auto refuse = [&](std::string_view cause) {
    return absl::InvalidArgumentError(StrCat("attach trainer: stream ", stream.job, ": ", cause));
  };
  const Job& job = *table.Find(stream.job);
  if (request.identity->role != Role::kOperator && request.identity->key_name != job.submitter) {
    return absl::PermissionDeniedError(
        StrCat("attach trainer: stream ", stream.job, ": it was submitted with another key"));
  }
  if (message.world_size != stream.geometry.world_size || message.rank >= message.world_size) {
    return refuse(StrCat("rank ", message.rank, " of ", message.world_size, ", the plan is for ",
                         stream.geometry.world_size, " ranks"));
  }
  if (message.slots.size() > kMaxSlotsPerTrainer) return refuse("too many slots");
  if (message.first_epoch > kMaxEpoch) {
    return refuse(StrCat("epoch ", message.first_epoch, " is past the last one, ", kMaxEpoch));
  }
  if (message.first_batch >= BatchesPerEpoch(stream.geometry)) {
    return refuse("the first batch lies behind the epoch's last");
  }
  const std::string& host = message.endpoint.host_identity;
  const auto own = hosts.find(host);
  const bool at_home = own != hosts.end() && !own->second.empty();
  const bool stranger = std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
    return DifferInUserOnly(entry.second.host_identity, host);
  });
  if (stranger && !at_home && message.endpoint.ucx_address.empty()) {
    return absl::FailedPreconditionError(
        StrCat("attach trainer: stream ", stream.job,
               ": the cluster's workers on this machine run as another user, and users share no "
               "memory: run the trainer as the one who ran `patchbay up` or `join` here, "
               "or give both sides a --data-policy"));
  }
  const auto& dead = stream.dead_incarnations;
  if (message.trainer_incarnation == 0 ||
      std::find(dead.begin(), dead.end(), message.trainer_incarnation) != dead.end()) {
    return absl::AbortedError(
        StrCat("attach trainer: stream ", stream.job, ": another process has this rank"));
  }
  return absl::OkStatus();
}

void Core::Machine::On(const Request& request, protocol::AttachTrainer&& message) {
  StatusOr<Stream*> opened = OpenStream(message.stream);
  if (!opened.ok()) return Refuse(request, opened.status());
  Stream& stream = **opened;
  if (const Status fits = CheckAttach(request, message, stream); !fits.ok()) {
    return Refuse(request, fits);
  }
  const auto before = stream.trainers.find(message.rank);
  const bool known =
      before != stream.trainers.end() && before->second.incarnation == message.trainer_incarnation;
  if (!known) {
    if (before != stream.trainers.end()) DropTrainer(stream, message.rank);
    AttachFresh(stream, message);
  }
  Trainer& trainer = stream.trainers.at(message.rank);
  if (known) CatchUp(stream, trainer, message);
  const bool moved = !known || !(trainer.endpoint == message.endpoint);
  trainer.endpoint = std::move(message.endpoint);
  trainer.endpoint.rank = message.rank;
  trainer.peer = request.peer;
  trainer.state = TrainerState::kAttached;
  trainer.last_seen = now;
  peers.at(request.peer).trainer = {stream.job, message.rank};
  stream.empty_since = 0;
  for (const SlotRow& row : message.slots) TakeRow(stream, trainer, row);
  for (const LeaseNumber& number : trainer.leases) {
    if (leases.at(number).phase == ShardPhase::kFencing) SendFence(leases.at(number));
  }
  if (moved) DescribeToWorkers(stream);
  CutGrants(stream, trainer);
  Answer(request,
         protocol::TrainerAttached{table.incarnation(), stream.plan_digest, stream.geometry});
}

/// A trainer this scheduler has not seen: a new process, or one of a former incarnation's.
void Core::Machine::AttachFresh(Stream& stream, const protocol::AttachTrainer& message) {
  Trainer& trainer = stream.trainers[message.rank];
  trainer.rank = message.rank;
  trainer.incarnation = message.trainer_incarnation;
  trainer.pid = message.pid;
  trainer.next = {message.first_epoch, message.first_batch};
  if (had_workers) trainer.batches_to_fence = static_cast<std::uint32_t>(message.slots.size());
}

/// The trainer has taken every batch before its first one. A slot that is free in its table
/// although one of those batches was to fill it was never used for it: grants were cut from an old
/// position.
void Core::Machine::CatchUp(Stream& stream, Trainer& trainer,
                            const protocol::AttachTrainer& message) {
  const Position first{message.first_epoch, message.first_batch};
  trainer.behind = false;
  trainer.next = std::max(trainer.next, first);
  while (!trainer.filling.empty() && trainer.filling.begin()->first < first) {
    const Position at = trainer.filling.begin()->first;
    const auto shards = static_cast<std::uint32_t>(trainer.filling.begin()->second.shards.size());
    for (std::uint32_t i = 0; i < shards; ++i) {
      Count(stream, trainer, {at.epoch, at.batch, trainer.rank, i}, nullptr);
    }
  }
  for (const SlotRow& row : message.slots) {
    const auto it = trainer.slots.find(row.slot);
    if (it == trainer.slots.end() || row.state != SlotState::kFree) continue;
    Slot& slot = it->second;
    if (slot.state != SlotState::kFull || !(slot.at < first)) continue;
    if (row.generation != slot.generation || slot.announced != 0) continue;
    slot.announced = row.generation;
    FreeSlotIfClear(trainer, row.slot);
  }
}

void Core::Machine::DescribeToWorkers(const Stream& stream) {
  for (const Worker& worker : workers) {
    if (worker.peer != 0 && worker.streams_fetched.count(stream.job) != 0) {
      Send(worker.peer, 0, Describe(stream));  // without the plan: it has that
    }
  }
}

protocol::StreamDescribed Core::Machine::Describe(const Stream& stream) {
  protocol::StreamDescribed described;
  described.stream = stream.job;
  described.plan_digest = stream.plan_digest;
  described.plan_bytes = stream.plan.size();
  described.manifest_bytes = stream.manifest.size();
  described.read_prefixes = table.Find(stream.job)->read_prefixes;
  for (const auto& [rank, trainer] : stream.trainers) {
    described.trainers.push_back(trainer.endpoint);
  }
  return described;
}

void Core::Machine::On(const Request& request, protocol::FetchStream&& message) {
  Worker* worker = WorkerOf(request);
  if (worker == nullptr) return;
  StatusOr<Stream*> stream = OpenStream(message.stream);
  if (!stream.ok()) return Refuse(request, stream.status());
  worker->streams_fetched.insert(message.stream);
  protocol::StreamDescribed described = Describe(**stream);
  const std::string& plan = (*stream)->plan;
  const std::string& manifest = (*stream)->manifest;
  const std::uint64_t from = std::min<std::uint64_t>(message.offset, plan.size() + manifest.size());
  constexpr std::size_t kMost = protocol::kMaxInlineResultBytes;
  if (from < plan.size()) described.plan = plan.substr(from, kMost);
  const std::uint64_t skipped = std::max<std::uint64_t>(from, plan.size()) - plan.size();
  described.manifest = manifest.substr(skipped, kMost - described.plan.size());
  Answer(request, std::move(described));
}

void Core::Machine::On(const Request& request, protocol::AnnounceSlots&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.rank);
  if (trainer == nullptr) return;
  Stream& stream = streams.at(message.stream);
  for (const SlotRow& row : message.slots) TakeRow(stream, *trainer, row);
  CutGrants(stream, *trainer);
}

void Core::Machine::On(const Request& request, protocol::ShardsCounted&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.rank);
  if (trainer == nullptr) return;
  Stream& stream = streams.at(message.stream);
  for (const auto& item : message.items) {
    // It came under a former scheduler's lease, maybe into another slot than its batch has here:
    // the answer to its fence says that it counted, and where.
    if (trainer->unknown.count(item.shard) != 0) continue;
    if (item.shard.rank == message.rank) Count(stream, *trainer, item.shard, &item.lease);
  }
  CutGrants(stream, *trainer);
}

void Core::Machine::Count(Stream&, Trainer& trainer, const ShardId& id, const LeaseNumber* lease) {
  const auto it = trainer.filling.find(PositionOf(id));
  if (it == trainer.filling.end() || id.shard >= it->second.shards.size()) return;
  Filling& filling = it->second;
  Shard& shard = filling.shards[id.shard];
  if (shard.state == ShardState::kCounted) return;
  const LeaseNumber live = shard.state == ShardState::kLeased ? shard.lease : LeaseNumber{};
  trainer.pending.erase({it->first, id.shard});
  trainer.unknown.erase(id);
  trainer.failing_since = 0;
  shard.state = ShardState::kCounted;
  shard.lease = {};
  ++counters.shards_counted;
  const std::uint32_t slot = filling.slot;
  if (++filling.counted == filling.shards.size()) {
    trainer.slots.at(slot).state = SlotState::kFull;
    trainer.filling.erase(it);
  }
  if (live == LeaseNumber{}) return;
  Lease& held = leases.at(live);
  if (lease == nullptr || *lease == live) {
    ++workers[held.worker].shards_done;
    Resolve(live);
  } else if (held.phase != ShardPhase::kFencing) {
    if (held.phase == ShardPhase::kMaking) TakeBack(held);
    if (held.phase == ShardPhase::kReturned) Fence(held, 0);
  }
}

/// The answer to an unknown shard's fence shows another batch where its own was to go.
bool Core::Machine::NamesAnother(const Trainer& trainer,
                                 const protocol::ShardFenced& message) const {
  const auto filling = trainer.filling.find(PositionOf(message.shard));
  const SlotRow& row = message.row;
  if (message.already_counted || trainer.unknown.count(message.shard) == 0 ||
      filling == trainer.filling.end() || filling->second.slot != row.slot) {
    return false;
  }
  const Position at{row.epoch, row.batch};
  const bool holds = row.state == SlotState::kFilling || row.state == SlotState::kFull;
  const std::uint64_t generation = trainer.slots.at(row.slot).generation;
  return holds ? row.generation >= generation && at != filling->first
               : row.state == SlotState::kFree && row.generation > generation;
}

void Core::Machine::On(const Request& request, protocol::ShardFenced&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.shard.rank);
  if (trainer == nullptr) return;
  Stream& stream = streams.at(message.stream);
  if (NamesAnother(*trainer, message)) return TakeRow(stream, *trainer, message.row);
  const bool unknown = message.lease == LeaseNumber{table.incarnation(), 0} &&
                       trainer->unknown.erase(message.shard) != 0;
  const auto it = leases.find(message.lease);
  const bool fenced = it != leases.end() && it->second.is_shard &&
                      it->second.stream == message.stream && it->second.shard == message.shard &&
                      it->second.phase == ShardPhase::kFencing;
  if (!unknown && !fenced) return;
  TakeMove(stream, *trainer, message);
  const Position in_row{message.row.epoch, message.row.batch};
  if (message.already_counted &&
      (message.row.state == SlotState::kFree || in_row != PositionOf(message.shard))) {
    trainer->behind = true;  // the batch is not in its ring any more: ask for the whole table
  }
  if (message.row.state == SlotState::kResting && trainer->slots.count(message.row.slot) != 0) {
    TakeResting(*trainer, message.row);
  }
  if (message.already_counted) Count(stream, *trainer, message.shard, &message.lease);
  if (fenced) Resolve(message.lease);
  const auto filling = trainer->filling.find(PositionOf(message.shard));
  if (unknown && filling != trainer->filling.end()) {
    Shard& shard = filling->second.shards[message.shard.shard];
    if (shard.state == ShardState::kUnknown) {
      shard.state = ShardState::kPending;
      trainer->pending.insert({filling->first, message.shard.shard});
    }
  }
  shards_changed = true;
  CutGrants(stream, *trainer);
}

/// The batch lies in slot `to`, not where it was bound to. Either it was moved, and its old slot
/// rests; or it came in under a former scheduler's grant, and this scheduler bound the two slots
/// the wrong way round: then nothing was leased yet, and they change places.
void Core::Machine::LeaveSlot(Trainer& trainer, Filling& filling, std::uint32_t to) {
  Slot& from = trainer.slots.at(filling.slot);
  const auto target = trainer.slots.find(to);
  const bool known = target != trainer.slots.end();
  const bool crossed =
      filling.chosen_here && known && from.leases == 0 &&
      (target->second.state == SlotState::kFree || target->second.state == SlotState::kFilling);
  if (!crossed) {
    from.state = SlotState::kResting;
    return;
  }
  const auto other = trainer.filling.find(target->second.at);
  if (target->second.state == SlotState::kFilling && other != trainer.filling.end() &&
      other->second.slot == to) {
    other->second.slot = filling.slot;
    from.at = target->second.at;
  } else {
    from.state = SlotState::kFree;
    if (from.announced == 0) trainer.free.insert(filling.slot);
  }
}

/// The batch lies where the row says.
void Core::Machine::MoveFilling(Trainer& trainer, Filling& filling, const SlotRow& row) {
  LeaveSlot(trainer, filling, row.slot);
  trainer.free.erase(row.slot);
  Slot& to = trainer.slots[row.slot];
  to.generation = row.generation;
  to.state = SlotState::kFilling;
  to.at = {row.epoch, row.batch};
  to.announced = 0;
  to.rests = false;
  filling.slot = row.slot;
  filling.chosen_here = false;
}

/// The trainer may have moved the batch to a spare slot while it fenced. Other leases into the old
/// slot stay good: the trainer copies what they bring.
void Core::Machine::TakeMove(Stream& stream, Trainer& trainer,
                             const protocol::ShardFenced& message) {
  const SlotRow& row = message.row;
  const Position at = PositionOf(message.shard);
  const auto filling = trainer.filling.find(at);
  if (filling == trainer.filling.end() || Position{row.epoch, row.batch} != at) return;
  if (row.state == SlotState::kFree || row.state == SlotState::kResting) return;
  const std::uint32_t from = filling->second.slot;
  if (row.slot != from) {
    if (trainer.slots.count(row.slot) == 0 && trainer.slots.size() >= kMaxSlotsPerTrainer) return;
    MoveFilling(trainer, filling->second, row);
  }
  for (const std::uint32_t shard : row.counted) {
    if (shard == message.shard.shard) continue;
    const ShardId id{at.epoch, at.batch, trainer.rank, shard};
    Count(stream, trainer, id, nullptr);
    if (trainer.filling.count(at) == 0) return;
  }
}

void Core::Machine::On(const Request& request, protocol::DetachTrainer&& message) {
  const auto it = streams.find(message.stream);
  if (it == streams.end()) return Answer(request, protocol::TrainerDetached{});
  Stream& stream = it->second;
  if (VisibleJob(request, message.stream) == nullptr) return;
  const auto trainer = stream.trainers.find(message.rank);
  if (trainer != stream.trainers.end()) {
    if (trainer->second.peer != request.peer && trainer->second.state == TrainerState::kAttached) {
      return Refuse(request, absl::FailedPreconditionError(
                                 "detach trainer: another connection has this rank"));
    }
    DropTrainer(stream, message.rank);
    if (stream.trainers.empty()) stream.empty_since = now;
    DescribeToWorkers(stream);
  }
  const std::set<std::uint32_t>& detached = table.Find(message.stream)->detached;
  if (message.rank < stream.geometry.world_size && detached.count(message.rank) == 0) {
    Emit(DetachRecord{message.stream, message.rank});
  }
  if (detached.size() == stream.geometry.world_size) EndStream(message.stream, JobState::kDone, {});
  Answer(request, protocol::TrainerDetached{});
}

/// Silent for too long: nobody makes anything for it. Its slots stay known in case it comes back.
void Core::Machine::ForgetTrainer(Trainer& trainer) {
  trainer.state = TrainerState::kForgotten;
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = leases.at(number);
    if (lease.phase == ShardPhase::kMaking) TakeBack(lease);
    if (lease.phase == ShardPhase::kReturned) Fence(lease, 0);
  }
}

void Core::Machine::DropTrainer(Stream& stream, std::uint32_t rank) {
  Trainer& trainer = stream.trainers.at(rank);
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = leases.at(number);
    if (lease.phase == ShardPhase::kMaking) {
      Revoke(lease);
      LeaveWorker(lease);
    }
    leases.erase(number);
  }
  stream.dead_incarnations.push_back(trainer.incarnation);
  if (stream.dead_incarnations.size() > kMaxDeadIncarnations) stream.dead_incarnations.pop_front();
  stream.trainers.erase(rank);
  shards_changed = true;
}

void Core::Machine::EndStream(JobId job, JobState state, Outcome&& outcome) {
  if (!outcome.message.empty()) LogLine(job, StrCat("stream ended: ", outcome.message));
  if (outcome.message.size() > kMaxOutcomeBytes) outcome.message.resize(kMaxOutcomeBytes);
  Emit(EndStreamRecord{job, state, std::move(outcome)});
}

/// Its streams end: whoever attached with it is cut off, and nobody else may.
void Core::Machine::KeyRevoked(const std::string& name) {
  std::vector<JobId> open;
  for (const auto& [id, job] : table.jobs()) {
    if (job.IsStream() && !IsEnded(job.state) && job.submitter == name) open.push_back(id);
  }
  for (const JobId id : open) {
    EndStream(id, JobState::kFailed,
              {static_cast<std::int32_t>(absl::StatusCode::kPermissionDenied),
               StrCat("stream: the key ", name, " was revoked")});
  }
}

/// The job ended: its trainers are told once that is durable, unless they left by themselves.
void Core::Machine::CloseStream(const Job& job) {
  const auto it = streams.find(job.id);
  if (it == streams.end()) return;
  Outcome why = job.stream_outcome;
  if (why.code == 0) {
    why = {static_cast<std::int32_t>(absl::StatusCode::kCancelled),
           "stream: the job was cancelled"};
  }
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, trainer] : it->second.trainers) {
    SendDurable(trainer.peer, 0, protocol::StreamFailed{job.id, why});
    ranks.push_back(rank);
  }
  for (const std::uint32_t rank : ranks) DropTrainer(it->second, rank);
  for (Worker& worker : workers) worker.streams_fetched.erase(job.id);
  streams.erase(it);
}

void Core::Machine::TickStreams() {
  std::vector<JobId> open;
  for (const auto& [id, stream] : streams) open.push_back(id);
  for (const JobId id : open) {
    Stream& stream = streams.at(id);
    bool anyone = false;
    for (auto& [rank, trainer] : stream.trainers) {
      TickTrainer(stream, trainer);
      anyone = anyone || trainer.state != TrainerState::kForgotten;
    }
    if (anyone) stream.empty_since = 0;
    if (!anyone && stream.empty_since == 0) stream.empty_since = now;
    if (!anyone && now - stream.empty_since >= options.abandon_stream_ms) {
      EndStream(id, JobState::kCancelled,
                {static_cast<std::int32_t>(absl::StatusCode::kCancelled), "stream: no trainer"});
      continue;
    }
    CheckStarved(stream);
  }
}

void Core::Machine::TickTrainer(Stream& stream, Trainer& trainer) {
  const TimeMs silent = now - trainer.last_seen;
  if (trainer.state != TrainerState::kForgotten && silent >= options.forget_trainer_ms) {
    ForgetTrainer(trainer);
  } else if (trainer.state == TrainerState::kAttached && silent >= options.suspend_trainer_ms) {
    trainer.state = TrainerState::kSuspended;
  }
  for (const LeaseNumber& number : trainer.leases) TickRevoking(leases.at(number));
  if (trainer.state == TrainerState::kForgotten) return;
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = leases.at(number);
    if (lease.phase == ShardPhase::kFencing && now - lease.phase_at >= options.resend_ms) {
      SendFence(lease);
    } else if (lease.phase == ShardPhase::kReturned &&
               now - lease.phase_at >= options.count_wait_ms) {
      Fence(lease, 0);
    }
  }
  std::vector<ShardId> again;
  for (const auto& [id, sent] : trainer.unknown) {
    if (now - sent >= options.resend_ms) again.push_back(id);
  }
  for (const ShardId& id : again) SendUnknownFence(stream, trainer, id);
  CutGrants(stream, trainer);
}

}  // namespace patchbay::scheduler
