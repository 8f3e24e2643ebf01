// Clients and trainers of the simulation.
#include <algorithm>
#include <utility>

#include "runtime/format/json/described.h"
#include "runtime/model/jobs/team_policy.h"
#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {

using protocol::SlotState;

// ---------------------------------------------------------------- clients

const SimJob* World::FindJob(JobId id) const {
  const auto it =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const SimJob& job) { return job.id == id; });
  return it == jobs_.end() ? nullptr : &*it;
}

void World::SendSubmit(SimJob& job) {
  protocol::SubmitJob submit;
  submit.submission_key = job.key;
  submit.kind = job.kind;
  submit.root.op = job.kind == "stream" ? "stream.plan" : "sim.fan";
  submit.root.payload = job.payload;
  submit.root.resources = {1000, 0, 0};
  submit.manifest = StrCat(job.world_size, " ", job.numerics, job.has_units ? kUnitsMark : "");
  submit.priority = job.priority;
  submit.world_size = job.world_size;
  submit.waits = job.number % 2 == 0;
  ToScheduler(UserOf(job), submit, job.number + kSubmitRequest);
}

/// Users of three teams, two of which the policies name.
void World::JoinUsers() {
  const std::uint64_t count = 1 + dice_.Below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    Actor& user = users_.emplace_back();
    const std::string team = i % 3 == 2 ? "" : StrCat("team", i % 3);
    user.identity = {scheduler::Role::kSubmitter, StrCat("user", i), {"/"}, {"/"}, team};
    user.receive = client_.receive;
    Join(user);
  }
  for (SimJob& job : jobs_) {
    job.user = dice_.Below(count);
    job.priority = std::min(job.priority, 0);
  }
  ApplyPolicy();
}

/// A policy, and some time later the next one. Once all is well, every team is in it.
void World::ApplyPolicy() {
  static constexpr std::uint32_t kWeights[] = {1, 500, 1000, 1000, 7000};
  model::TeamPolicy policy;
  const auto draw = [&](model::TeamRules& rules) {
    rules.weight_millis = kWeights[dice_.Below(5)];
    if (dice_.Chance(0.4))
      rules.guaranteed.cpu_percent = static_cast<std::uint32_t>(dice_.Below(34));
    // A stream at its cap would wait beside idle workers: I18.
    const bool caps = !options_.ghosts;
    if (caps && dice_.Chance(0.4)) rules.most.cpu_millis = 1000 * (1 + dice_.Below(4));
    if (dice_.Chance(0.2)) rules.most.jobs = 1 + dice_.Below(3);
    if (dice_.Chance(0.2)) rules.most.streams = 1 + dice_.Below(2);
    if (caps && dice_.Chance(0.3)) rules.users["user0"].most.cpu_millis = 1000;
  };
  draw(*policy.others);
  draw(policy.teams["team0"]);
  const bool gone = !healed_ && dice_.Chance(0.2);
  if (!gone) draw(policy.teams["team1"]);
  const std::string to = !gone || dice_.Chance(0.2) ? "" : dice_.Chance(0.5) ? "team0" : "default";
  Hit(gone ? "policy without a team" : "policy");
  ToScheduler(client_, protocol::ApplyTeams{DumpJson(JsonOf(policy)), "source", to},
              kPolicyRequest + ++policies_);
  if (healed_ && policies_ > 1'000) return;
  At(now_ + dice_.Between(300, 6'000), [this] { ApplyPolicy(); });
}

/// Commands that people give about a job that runs, or has ended.
void World::Command(SimJob& job) {
  const bool open =
      job.state == protocol::JobState::kQueued || job.state == protocol::JobState::kRunning;
  if (open && job.cancel_at != 0 && now_ >= job.cancel_at && !job.cancelled) {
    Hit("job cancelled");
    job.cancel_sent = true;
    ToScheduler(client_, protocol::CancelJob{job.id}, job.number + kCancelRequest);
  }
  if (!open && job.retry) {
    ToScheduler(client_, protocol::RetryJob{job.id}, job.number + kRetryRequest);
  }
  if (!open) return;
  protocol::DescribeJobs describe;
  describe.jobs = {job.id};
  ToScheduler(client_, describe, job.number + kDescribeRequest + job.commands * kRequestsPerKind);
}

void World::SubmitLoop(SimJob& job) {
  if (job.id == 0) {
    SendSubmit(job);
  } else {
    if (dice_.Chance(0.1)) {
      Hit("submission repeated");
      SendSubmit(job);
    }
    Command(job);
    if (job.has_units) TendConsumers(job);
  }
  At(now_ + faults_.command_ms, [this, &job] { SubmitLoop(job); });
}

void World::ClientReceive(Body&& body, std::uint64_t request) {
  const std::uint64_t number = request % kRequestsPerKind;
  if (const auto* submitted = std::get_if<protocol::JobSubmitted>(&body)) {
    SimJob& job = jobs_.at(request - kSubmitRequest);
    if (job.id != 0 && job.id != submitted->job) Violation("I5: one submission key gave two jobs");
    job.id = submitted->job;
    if (job.kind != "stream" || job.started) return;
    job.started = true;
    if (job.has_units) return;
    for (std::uint32_t rank = 0; rank < job.world_size; ++rank) StartTrainer(job, rank);
  } else if (std::holds_alternative<protocol::JobCancelled>(body)) {
    SimJob& job = jobs_.at(number);
    if (job.cancel_at == 0 || job.cancelled) return;
    job.cancelled = true;
    ++job.commands;
    if (!healed_ && faults_.tried_again != 0 && job.kind != "stream") job.retry = true;
  } else if (std::holds_alternative<protocol::JobRetried>(body)) {
    SimJob& job = jobs_.at(number);
    if (!job.retry) return;
    Hit("job retried");
    job.retry = false;
    ++job.commands;
    job.cancel_at = 0;
    job.cancelled = false;
    job.state = protocol::JobState::kRunning;
    if (!healed_ && faults_.tried_again != 0 && dice_.Chance(faults_.tried_again)) {
      job.cancel_at = now_ + dice_.Between(1, 4 * faults_.command_ms);
    }
  } else if (const auto* described = std::get_if<protocol::JobsDescribed>(&body)) {
    SimJob& job = jobs_.at(number);
    const bool old = request < kDescribeRequest + job.commands * kRequestsPerKind;
    if (old || described->jobs.size() != 1 || described->jobs[0].job != job.id) return;
    const protocol::JobRow& row = described->jobs[0];
    job.state = row.state;
    job.reason = row.failed.empty() ? "" : TextOf(row.failed.front().outcome);
    if (job.cancelled && row.state == protocol::JobState::kRunning) {
      Violation("I6: a cancelled job runs");
    }
  }
}

SimTrainer* World::FindTrainer(JobId stream, std::uint32_t rank) {
  for (SimTrainer& trainer : trainers_) {
    if (trainer.stream == stream && trainer.rank == rank) return &trainer;
  }
  return nullptr;
}

// ---------------------------------------------------------------- trainers

void World::StartTrainer(SimJob& job, std::uint32_t rank) {
  SimTrainer& trainer = trainers_.emplace_back();
  trainer.actor.identity = UserOf(job).identity;
  trainer.actor.node = static_cast<int>(dice_.Below(agents_.size()));
  trainer.actor.host = agents_[static_cast<std::size_t>(trainer.actor.node)]->actor.host;
  trainer.stream = job.id;
  trainer.rank = rank;
  trainer.world_size = job.world_size;
  trainer.wanted = job.wanted_batches;
  if (dice_.Chance(0.2)) {
    trainer.step_ms = dice_.Between(200, 1500);
    trainer.wanted = std::min<std::uint64_t>(trainer.wanted, 15);
  }
  trainer.actor.receive = [this, &trainer](Body&& body, std::uint64_t request) {
    // An answer comes on the connection that was asked on: that to an earlier attach is lost.
    const bool answers = std::holds_alternative<protocol::TrainerAttached>(body);
    if (answers && request != trainer.attach_request) return;
    if (trainer.is_consumer && ConsumerReceive(trainer, body, request)) return;
    TrainerReceive(trainer, std::move(body));
  };
  Join(trainer.actor);
  NewTrainerProcess(trainer);
}

/// The process is killed, and started again where its last token says, with an empty ring.
void World::NewTrainerProcess(SimTrainer& trainer) {
  ++trainer.actor.life;
  ++trainer.actor.connection;
  trainer.actor.frozen_until = 0;
  trainer.incarnation = next_incarnation_++;
  trainer.scheduler_incarnation = 0;
  trainer.table.reset();
  trainer.memory.clear();
  trainer.taken.clear();
  trainer.proofs.clear();
  trainer.holders.clear();
  trainer.barred.clear();
  trainer.named_holders.clear();
  trainer.admits = false;
  trainer.attach_at = 0;
  const bool trained = trainer.consumed >= trainer.wanted;
  for (std::uint64_t back = trained ? 0 : dice_.Below(4); back != 0 && !trainer.history.empty();
       --back) {
    Hit("trainer resumed from an older token");
    trainer.next = trainer.history.back();
    trainer.history.pop_back();
    --trainer.consumed;
  }
  AtActor(trainer.actor, now_ + dice_.Between(1, 3000), [this, &trainer] { TrainerLoop(trainer); });
}

protocol::SlotRow World::RowOf(SimTrainer& trainer, std::uint32_t slot) {
  const data::SlotReport report = trainer.table->Report(slot);
  protocol::SlotRow row;
  row.slot = slot;
  row.generation = report.generation;
  row.epoch = report.at.epoch;
  row.batch = report.at.batch;
  row.counted = report.counted;
  switch (report.phase) {
    case data::SlotPhase::kFree:
      row.state = SlotState::kFree;
      break;
    case data::SlotPhase::kFilling:
      row.state = SlotState::kFilling;
      break;
    case data::SlotPhase::kFull:
    case data::SlotPhase::kInUse:
      row.state = SlotState::kFull;
      break;
    default:
      row.state = SlotState::kResting;
  }
  return row;
}

void World::Attach(SimTrainer& trainer) {
  protocol::AttachTrainer attach;
  attach.stream = trainer.stream;
  attach.rank = trainer.rank;
  attach.world_size = trainer.world_size;
  attach.trainer_incarnation = trainer.incarnation;
  attach.pid = 1;
  attach.endpoint.host_identity = HostOf(trainer.actor);
  trainer.admits = false;
  trainer.named_holders = trainer.holders;
  attach.holders.assign(trainer.holders.begin(), trainer.holders.end());
  trainer.attach_at = now_;
  attach.endpoint.remote_address = "there";
  attach.first_epoch = trainer.next.epoch;
  attach.first_batch = trainer.next.batch;
  if (trainer.table != nullptr) attach.units = trainer.table->units();
  if (trainer.table != nullptr) {
    for (std::uint32_t i = 0; i < trainer.table->SlotCount(); ++i) {
      attach.slots.push_back(RowOf(trainer, i));
    }
  }
  ToScheduler(trainer.actor, attach, ++trainer.attach_request);
}

void World::Announce(SimTrainer& trainer) {
  protocol::AnnounceSlots announce;
  announce.stream = trainer.stream;
  announce.rank = trainer.rank;
  for (std::uint32_t i = 0; i < trainer.table->SlotCount(); ++i) {
    announce.slots.push_back(RowOf(trainer, i));
  }
  ToScheduler(trainer.actor, announce);
}

void World::AnnounceOne(SimTrainer& trainer, std::uint32_t slot) {
  protocol::AnnounceSlots announce;
  announce.stream = trainer.stream;
  announce.rank = trainer.rank;
  announce.slots.push_back(RowOf(trainer, slot));
  ToScheduler(trainer.actor, announce);
}

void World::TrainerLoop(SimTrainer& trainer) {
  if (trainer.detached || !trainer.failure.empty()) return;
  if (trainer.is_consumer && !ConsumerLoop(trainer)) {
    // it waits for TrainerDetached
  } else if (trainer.consumed >= trainer.wanted) {
    ToScheduler(trainer.actor, protocol::DetachTrainer{trainer.stream, trainer.rank}, 9);
  } else if (trainer.scheduler_incarnation == 0 || !trainer.admits) {
    const TimeMs patience = 2 * faults_.delay_max_ms + faults_.disk_ms;
    if (trainer.attach_at == 0 || now_ - trainer.attach_at > patience) Attach(trainer);
  } else if (trainer.named_holders != trainer.holders &&
             !std::includes(trainer.holders.begin(), trainer.holders.end(),
                            trainer.named_holders.begin(), trainer.named_holders.end())) {
    Hit("attached again as a holder ended");
    Attach(trainer);
  } else {
    ToScheduler(trainer.actor, protocol::Heartbeat{});
    if (dice_.Chance(0.5) && trainer.table != nullptr) Announce(trainer);
  }
  AtActor(trainer.actor, now_ + 500, [this, &trainer] { TrainerLoop(trainer); });
}

void World::TrainerReceive(SimTrainer& trainer, Body&& body) {
  if (const auto* attached = std::get_if<protocol::TrainerAttached>(&body)) {
    const bool first = trainer.table == nullptr;
    trainer.scheduler_incarnation = attached->scheduler_incarnation;
    trainer.admits = true;
    // A process fenced under a former scheduler's lease gets the ring for one of this scheduler.
    if (trainer.admits_since < attached->scheduler_incarnation) trainer.barred.clear();
    trainer.admits_since = attached->scheduler_incarnation;
    if (!first) return;
    trainer.geometry = attached->geometry;
    data::SlotTableOptions ring;
    ring.stream = trainer.stream;
    ring.rank = trainer.rank;
    ring.geometry = trainer.geometry;
    ring.slots = static_cast<std::uint32_t>(dice_.Between(2, 5));
    ring.spares = 6;
    ring.first = trainer.next;
    auto table = data::SlotTable::Create(ring);
    if (!table.ok()) return Violation("the ring's geometry is refused");
    trainer.table = std::make_unique<data::SlotTable>(std::move(*table));
    Attach(trainer);
    Step(trainer);
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    if (trainer.scheduler_incarnation != 0 &&
        seen->scheduler_incarnation != trainer.scheduler_incarnation) {
      trainer.scheduler_incarnation = 0;
      Attach(trainer);
    }
  } else if (const auto* fence = std::get_if<protocol::FenceShard>(&body)) {
    if (trainer.table != nullptr) OnFence(trainer, *fence);
  } else if (std::holds_alternative<protocol::TrainerDetached>(body)) {
    if (trainer.leaves) return StartOver(trainer, dice_.Chance(0.7));
    if (trainer.consumed >= trainer.wanted) trainer.detached = true;
  } else if (const auto* failed = std::get_if<protocol::StreamFailed>(&body)) {
    if (trainer.consumed < trainer.wanted) {
      trainer.failure = StrCat("told: ", TextOf(failed->outcome));
    }
  }
}

/// Takes the next batch when it is there, trains on it, gives it back.
void World::Step(SimTrainer& trainer) {
  if (trainer.detached || !trainer.failure.empty() || trainer.consumed >= trainer.wanted) return;
  data::SlotTable& table = *trainer.table;
  TimeMs next = now_ + 5;
  const auto slot = table.FullSlot(table.next());
  const Position before = table.next();
  if (table.IsEmpty(before)) {
    table.Take(before);
    ++trainer.consumed;
  } else if (slot.has_value()) {
    const Position at = table.next();
    CheckBatch(trainer, *slot, at);
    if (at != trainer.next && !trainer.is_consumer) Violation("I3: batches are out of order");
    if (at < trainer.next) Violation("I3: a consumer's batches go back");
    table.Take(at);
    ++trainer.consumed;
    if (trainer.is_consumer) TookOfUnit(trainer, at);
    const std::uint64_t generation = table.Report(*slot).generation;
    const TimeMs step = dice_.Between(1, trainer.step_ms);
    AtActor(trainer.actor, now_ + step, [this, &trainer, s = *slot, at, generation] {
      CheckBatch(trainer, s, at);
      trainer.table->Release(s, generation);
      AnnounceOne(trainer, s);
    });
    next = now_ + step;
  }
  trainer.next = table.next();
  if (trainer.next != before) trainer.history.push_back(before);
  if (trainer.next != before) Progressed();
  if (trainer.next != before) trainer.progress_at = now_;
  if (trainer.history.size() > 3) trainer.history.pop_front();
  AtActor(trainer.actor, next, [this, &trainer] { Step(trainer); });
}

/// I4: the slot holds the whole batch.
void World::CheckBatch(SimTrainer& trainer, std::uint32_t slot, Position at) {
  const std::uint32_t shards = ShardsInRank(trainer.geometry, at.batch, trainer.rank);
  for (std::uint32_t i = 0; i < shards; ++i) {
    const PatchRun run = ShardRun(trainer.geometry, at.batch, trainer.rank, i);
    const ShardId wanted{at.epoch, at.batch, trainer.rank, i};
    const auto found = trainer.memory.find({slot, run.place});
    if (found == trainer.memory.end() || found->second != wanted) {
      Violation(StrCat("I4: batch ", at.ToString(), " holds other bytes at shard ", i));
    }
  }
}

/// A worker's bytes reach the slot. I8, I10: only where its grant still stands.
void World::Write(SimTrainer& trainer, const ShardLease& lease) {
  const data::SlotReport report = trainer.table->Report(lease.grant.slot);
  const Position at{lease.shard.epoch, lease.shard.batch};
  const bool mine = report.generation == lease.grant.slot_generation &&
                    (report.phase == data::SlotPhase::kFree || report.at == at);
  if (!mine && report.phase != data::SlotPhase::kSpare) {
    Violation(StrCat("I10: lease ", lease.lease.ToString(), " writes into slot ", lease.grant.slot,
                     ", which is another batch's now"));
  }
  audit_.Written(trainer.incarnation, lease);
  trainer.memory[{lease.grant.slot, lease.grant.place}] = lease.shard;
}

void World::Move(SimTrainer& trainer, const data::ShardMove& move) {
  trainer.memory[{move.to_slot, move.place}] = trainer.memory[{move.from_slot, move.place}];
}

void World::Arrive(SimTrainer& trainer, const ShardLease& lease) {
  if (trainer.table == nullptr || trainer.incarnation != ring_of_[lease.lease]) return;
  data::ShardHeader header;
  header.stream = lease.stream;
  header.shard = lease.shard;
  header.grant = lease.grant;
  header.lease = lease.lease;
  const auto counted = trainer.table->Count(header);
  if (!counted.ok()) return CheckRefusal(trainer, lease);
  if (counted->move.has_value()) Move(trainer, *counted->move);
  costs_.Counted(lease.lease);
  trainer.progress_at = trainer.counted_at = now_;
  protocol::ShardsCounted message;
  message.stream = trainer.stream;
  message.rank = trainer.rank;
  message.items.push_back({lease.lease, lease.shard});
  ToScheduler(trainer.actor, message);
}

/// A grant may be refused because its slot changed hands at the trainer; the scheduler learns of it
/// and does not cut the same grant for ever.
void World::CheckRefusal(SimTrainer& trainer, const ShardLease& lease) {
  Hit("dead grant refused");
  const data::SlotReport slot = trainer.table->Report(lease.grant.slot);
  const Position at{lease.shard.epoch, lease.shard.batch};
  const bool dead = slot.generation != lease.grant.slot_generation || at < trainer.table->next();
  if (dead || !audit_.IsNewest(trainer.incarnation, lease)) return;
  const bool elsewhere = trainer.table->SlotOf(at).value_or(lease.grant.slot) != lease.grant.slot;
  const bool anothers = slot.phase != data::SlotPhase::kFree && slot.at != at;
  if (!elsewhere && !anothers) return;
  Hit("grant into a slot that is another's");
  unsigned& times = refusals_[{trainer.incarnation, lease.shard}];
  if (++times > kMostRefusals) {
    Violation(StrCat("I12: shard ", lease.shard.ToString(), " was refused ", times,
                     " times, last by slot ", lease.grant.slot));
  }
}

/// As in runtime/wire/data: a fenced process that has no mapping writes nowhere, and gets none from
/// that scheduler.
void World::OnFence(SimTrainer& trainer, const protocol::FenceShard& fence) {
  Hit("shard fenced");
  if (!trainer.table->Fence(fence.shard, fence.lease)) return AnswerFence(trainer, fence, true);
  if (trainer.holders.count(fence.worker_pid) == 0) {
    const bool former = fence.lease.incarnation < trainer.admits_since;
    if (fence.worker_pid != 0 && !former) trainer.barred.insert(fence.worker_pid);
    return AnswerFence(trainer, fence, false);
  }
  if (faults_.scheduler_crash_ms != 0 && !healed_ && dice_.Chance(faults_.crash_while_fencing)) {
    At(now_ + dice_.Between(1, faults_.fence_crash_ms), [this] {
      Hit("scheduler crash while a fence waits for proof");
      CrashScheduler();
    });
  }
  AtActor(trainer.actor, now_ + 2000, [this, &trainer, fence] {
    if (ProcessLives(fence.worker_pid)) {
      const auto moved = trainer.table->Evacuate(fence.shard, fence.grant);
      if (!moved.ok()) {
        Hit("no spare slot");
        trainer.failure = kNoSpare;
        return;
      }
      if (moved->resting_slot.has_value()) {
        Hit("batch moved to a spare slot");
        trainer.proofs.emplace_back(fence.worker_pid, *moved->resting_slot);
      }
      for (const data::ShardMove& move : moved->moves) Move(trainer, move);
      const auto now_in = trainer.table->SlotOf({fence.shard.epoch, fence.shard.batch});
      if (moved->resting_slot.has_value()) AnnounceOne(trainer, *moved->resting_slot);
      if (now_in.has_value()) AnnounceOne(trainer, *now_in);
    }
    AnswerFence(trainer, fence, false);
  });
}

void World::AnswerFence(SimTrainer& trainer, const protocol::FenceShard& fence, bool counted) {
  audit_.Fenced(trainer.incarnation, fence.shard, fence.lease);
  protocol::ShardFenced fenced;
  fenced.stream = trainer.stream;
  fenced.lease = fence.lease;
  fenced.shard = fence.shard;
  fenced.already_counted = counted;
  const auto slot = trainer.table->SlotOf({fence.shard.epoch, fence.shard.batch});
  fenced.row =
      RowOf(trainer, slot.value_or(std::min(fence.grant.slot, trainer.table->SlotCount() - 1)));
  ToScheduler(trainer.actor, fenced);
}

void World::ProcessEnded(std::int64_t pid) {
  for (SimTrainer& trainer : trainers_) {
    trainer.holders.erase(pid);
    if (trainer.table == nullptr) continue;
    std::erase_if(trainer.proofs, [&](const auto& proof) {
      if (proof.first != pid) return false;
      trainer.table->ProveGone(proof.second);
      return true;
    });
  }
}

}  // namespace patchbay::sim
