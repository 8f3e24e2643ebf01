// Checks of the contract while a simulated cluster runs, and at its end.
#include <algorithm>
#include <utility>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {

using scheduler::Actions;
using scheduler::JournalRecord;

namespace {

/// A stream whose units have all ended: some may have failed alone.
protocol::JobState StateByUnits(const ModelJob* job) {
  if (job == nullptr) return protocol::JobState::kDone;
  const bool all_good = std::all_of(job->units.begin(), job->units.end(),
                                    [](const auto& unit) { return unit.second == 0; });
  return all_good ? protocol::JobState::kDone : protocol::JobState::kPartlyFailed;
}

}  // namespace

void World::CheckCore() {
  if (core_ == nullptr) return;
  const Status sound = core_->CheckInvariants();
  if (!sound.ok()) Violation(std::string(MessageOf(sound)));
}

void World::CheckRecord(const JournalRecord& record) {
  const StatusOr<scheduler::Record> decoded = scheduler::DecodeRecord(record.bytes);
  if (!decoded.ok()) return Violation("a record cannot be read back");
  Note(StrCat("durable ", record.sequence, " ", TextOf(decoded->body)));
  const bool ends = std::holds_alternative<scheduler::CommitRecord>(decoded->body) ||
                    std::holds_alternative<scheduler::FailRecord>(decoded->body) ||
                    std::holds_alternative<scheduler::DetachRecord>(decoded->body);
  if (ends) Progressed();
  audit_.Durable(*decoded);
  if (options_.costs) costs_.Durable(*decoded);
}

SimWorker* World::WorkerOf(int actor) {
  const auto it = worker_of_.find(actor);
  return it == worker_of_.end() ? nullptr : it->second;
}

/// I6: an event that a peer was told of is in the journal after any crash.
void World::CheckSend(const Actor& actor, std::uint64_t request, const Body& body) {
  if (const auto* submitted = std::get_if<protocol::JobSubmitted>(&body)) {
    if (audit_.Find(submitted->job) == nullptr) Violation("I6: job acknowledged, not durable");
  } else if (const auto* described = std::get_if<protocol::JobsDescribed>(&body)) {
    for (const protocol::JobRow& row : described->jobs) audit_.Described(row);
  } else if (std::holds_alternative<protocol::JobCancelled>(body)) {
    audit_.CancelAcknowledged(jobs_.at(request - kCancelRequest).id);
  } else if (const auto* retried = std::get_if<protocol::JobRetried>(&body)) {
    audit_.RetryAcknowledged(jobs_.at(request - kRetryRequest).id, retried->tasks);
  } else if (const auto* failed = std::get_if<protocol::StreamFailed>(&body)) {
    if (failed->outcome.code != kAbortedCode) audit_.EndTold(failed->stream);
  } else if (const auto* told = std::get_if<protocol::UnitsAssigned>(&body)) {
    if (told->all_finished) audit_.EndTold(told->stream);
    CheckUnitsTold(actor, *told);
  } else if (std::holds_alternative<protocol::UnitFinished>(body)) {
    for (const SimTrainer& one : trainers_) {
      if (&one.actor == &actor) audit_.UnitAcknowledged(one.stream, request - kFinishRequest);
    }
  } else if (std::holds_alternative<protocol::TrainerDetached>(body)) {
    for (const SimTrainer& trainer : trainers_) {
      if (trainer.is_consumer) continue;
      if (&trainer.actor == &actor) audit_.DetachAcknowledged(trainer.stream, trainer.rank);
    }
  } else {
    CheckWorkerSend(actor, request, body);
  }
}

void World::CheckWorkerSend(const Actor& actor, std::uint64_t request, const Body& body) {
  if (const auto* granted = std::get_if<LeasesGranted>(&body)) return CheckGrants(actor, *granted);
  if (const auto* committed = std::get_if<protocol::TasksCommitted>(&body)) {
    const SimWorker* worker = WorkerOf(actor.id);
    for (const LeaseNumber& lease : committed->leases) {
      const auto item = worker->finished.find(lease);
      if (item == worker->finished.end()) continue;
      audit_.Acknowledged(lease, item->second.task, item->second.outcome.code == 0);
    }
  } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&body)) {
    for (const LeaseNumber& lease : revoked->leases) audit_.Void(lease);
  } else if (const auto* renewed = std::get_if<protocol::LeasesRenewed>(&body)) {
    for (const LeaseNumber& lease : renewed->unknown) {
      const auto item = WorkerOf(actor.id)->finished.find(lease);
      if (item != WorkerOf(actor.id)->finished.end()) {
        audit_.Acknowledged(lease, item->second.task, item->second.outcome.code == 0);
      }
      audit_.Void(lease);
    }
  } else if (const auto* registered = std::get_if<protocol::WorkerRegistered>(&body)) {
    audit_.IncarnationTold(registered->scheduler_incarnation);
    audit_.WorkerAcknowledged(registered_.at(sending_to_));
  } else if (std::holds_alternative<protocol::WorkerExitSeen>(body)) {
    audit_.ExitAcknowledged(request);
  } else if (const auto* agent = std::get_if<protocol::AgentRegistered>(&body)) {
    audit_.IncarnationTold(agent->scheduler_incarnation);
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    audit_.IncarnationTold(seen->scheduler_incarnation);
  } else if (const auto* attached = std::get_if<protocol::TrainerAttached>(&body)) {
    audit_.IncarnationTold(attached->scheduler_incarnation);
  } else if (const auto* kill = std::get_if<protocol::KillWorker>(&body)) {
    audit_.VoidAllOf(kill->worker_incarnation);
  } else if (const auto* fence = std::get_if<protocol::FenceShard>(&body)) {
    for (const SimTrainer& trainer : trainers_) {
      if (&trainer.actor == &actor) audit_.Fencing(trainer.incarnation, *fence);
    }
  }
}

void World::CheckGrants(const Actor& actor, const LeasesGranted& granted) {
  if (granted.tasks.size() > 512 || granted.shards.size() > 8) Violation("I11: lease burst");
  const SimWorker* worker = WorkerOf(actor.id);
  if (worker == nullptr) return Violation("I1: leases for somebody who is not a worker");
  const Holder holder{worker->incarnation, worker->capacity};
  for (const ShardLease& lease : granted.shards) {
    ring_of_[lease.lease] = attached_[{lease.stream, lease.shard.rank}];
    audit_.GrantedShard(holder, lease, ring_of_[lease.lease]);
    costs_.Granted(lease);
    const std::string& numerics = FindJob(lease.stream)->numerics;
    const bool cuda = worker->numerics == Numerics::kCuda;
    if (numerics != "strict" && (numerics == "cuda") != cuda) {
      Violation("I2: a shard went to a worker of another class");
    }
  }
  for (const TaskLease& lease : granted.tasks) audit_.GrantedTask(holder, lease);
}

/// The tasks that its threads run, unless they hang.
std::vector<TaskLease> World::Running(const SimWorker& worker) {
  std::vector<TaskLease> running;
  for (const SimWorker::Lane* lane : {&worker.work, &worker.planning}) {
    for (const TaskLease& lease : lane->tasks) {
      if (lease.lease == lane->running && !lane->hangs) running.push_back(lease);
    }
  }
  return running;
}

/// I9: the work that runs at the same time on a node fits it, according to its leases.
void World::CheckNodeUse(const SimAgent& agent) {
  protocol::Resources sum{0, 0, 0};
  std::string running;
  for (const auto& worker : agent.workers) {
    if (!worker->actor.alive || worker->actor.frozen_until > now_) continue;
    for (const TaskLease& lease : Running(*worker)) {
      if (!audit_.Stands(lease.lease, lease.task)) continue;
      protocol::Resources need = audit_.NeedOf(lease.task);
      if (lease.planning) need.cpu_millis = 0;  // it shares the worker's cores
      if (!scheduler::Fits(need, worker->capacity)) Violation("I9: too large for its worker");
      running += StrCat(", ", lease.task.ToString(), " under ", lease.lease.ToString(),
                        " at worker ", worker->actor.id);
      sum = {sum.cpu_millis + need.cpu_millis, sum.gpus + need.gpus,
             sum.memory_bytes + need.memory_bytes};
    }
  }
  if (sum.cpu_millis > agent.capacity.cpu_millis || sum.gpus > agent.capacity.gpus ||
      sum.memory_bytes > agent.capacity.memory_bytes) {
    Violation(StrCat("I9: ", agent.name, " runs more than it has", running));
  }
}

// ---------------------------------------------------------------- the end

std::string World::TrainersOf(JobId stream) const {
  std::string text;
  for (const SimTrainer& trainer : trainers_) {
    if (trainer.stream != stream) continue;
    text += StrCat("; rank ", trainer.rank, " took ", trainer.consumed, " of ", trainer.wanted,
                   trainer.detached ? ", detached" : "",
                   trainer.failure.empty() ? "" : ", failed: ", trainer.failure, ", scheduler ",
                   trainer.scheduler_incarnation, trainer.table ? ", ring" : "", " next ",
                   trainer.next.ToString());
    for (const auto& report :
         trainer.table ? trainer.table->ReportAll() : std::vector<data::SlotReport>()) {
      text += StrCat(" [", static_cast<int>(report.phase), " g", report.generation, " ",
                     report.at.ToString(), " +", report.counted.size(), "]");
    }
  }
  return text;
}

/// Whether the faults of this run explain that a job did not end as it should. Crashes may hit one
/// task or shard three times: it is quarantined like a poisonous one.
bool World::Excused(const SimJob& job) const {
  // A worker that never hears of a lease, also for a partition, looks as if it hung on it.
  const bool absences = faults_.loss > 0 || faults_.partition_ms != 0 ||
                        faults_.worker_crash_ms + faults_.agent_crash_ms + faults_.freeze_ms != 0;
  const auto says = [&](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  if (options_.ghosts) return says(job.reason, " workers");
  if (absences && (audit_.AnyQuarantined(job.id) || says(job.reason, " workers"))) return true;
  if (absences && says(job.reason, "make shards: ")) return true;
  return std::any_of(trainers_.begin(), trainers_.end(), [&](const SimTrainer& trainer) {
    return trainer.stream == job.id && absences && trainer.failure == kNoSpare;
  });
}

void World::CheckJob(const SimJob& job) {
  // A cancelled job may be one whose tasks were tried again before they had failed.
  const bool cancelled = job.cancel_sent && (job.state == protocol::JobState::kCancelled ||
                                             job.state == protocol::JobState::kPartlyFailed);
  const ModelJob* const journal = audit_.Find(job.id);
  const protocol::JobState expected = job.has_units && job.expected == protocol::JobState::kDone
                                          ? StateByUnits(journal)
                                          : job.expected;
  if (job.state != expected && !cancelled && !Excused(job)) {
    Violation(StrCat("I12: job ", job.id, " (", job.payload, ") is in state ",
                     static_cast<int>(job.state), ", expected ", static_cast<int>(expected), " ",
                     job.reason, TrainersOf(job.id),
                     core_ == nullptr ? ""
                                      : StrCat("; ready ", core_->gauges().tasks_ready, ", leases ",
                                               core_->gauges().leases)));
  }
  const bool failed = job.state == protocol::JobState::kPartlyFailed ||
                      (job.kind == "stream" && job.state == protocol::JobState::kFailed);
  if (job.payload.find("poison") != std::string::npos && failed && !audit_.AnyQuarantined(job.id)) {
    Violation("I16: a task that kills its workers was not quarantined");
  }
  const ModelJob* model = journal;
  const bool whole = job.state == protocol::JobState::kDone ||
                     (job.has_units && job.state == protocol::JobState::kPartlyFailed);
  if (job.has_units && whole && model != nullptr && model->units.size() != UnitsOf(job.id)) {
    Violation(StrCat("I19: stream ", job.id, " ended with ", model->units.size(), " of ",
                     UnitsOf(job.id), " units finished"));
  }
  if (model != nullptr && model->state != job.state) {
    Violation(StrCat("I14: job ", job.id, " ended in state ", static_cast<int>(job.state),
                     ", the journal says ", static_cast<int>(model->state)));
  }
}

/// I21, once everything has ended.
void World::CheckCosts() {
  const bool faults = faults_.loss != 0 || faults_.worker_crash_ms + faults_.agent_crash_ms +
                                                   faults_.scheduler_crash_ms +
                                                   faults_.trainer_crash_ms + faults_.freeze_ms +
                                                   faults_.partition_ms + faults_.reconnect_ms +
                                                   faults_.vanish_ms !=
                                               0;
  // The report of a worker may arrive after the news of its end.
  const bool ends = result_.coverage.contains("poison task") ||
                    result_.coverage.contains("poison plan") ||
                    result_.coverage.contains("worker killed by order");
  const scheduler::PeerId peer = next_peer_++;
  core_->PeerJoined(peer, {scheduler::Role::kOperator, "ops", {}, {}});
  Actions actions;
  protocol::Envelope envelope;
  envelope.request_id = 1;
  envelope.body = protocol::FetchUsage{};
  core_->Receive(peer, std::move(envelope), Now(), actions);
  for (const JournalRecord& record : cache_) CheckRecord(record);
  for (const JournalRecord& record : actions.records) CheckRecord(record);
  core_->JournalDurable(core_->last_sequence(), Now(), actions);
  for (const scheduler::SendAction& send : actions.sends) {
    if (const auto* fetched = std::get_if<protocol::UsageFetched>(&send.body)) {
      return costs_.Check(fetched->rows,
                          !faults && !ends && options_.crash_at_record == 0 && Finished());
    }
  }
  Violation("I21: no usage is told");
}

void World::CheckEnd() {
  for (const SimJob& job : jobs_) CheckJob(job);
  for (const SimTrainer& trainer : trainers_) {
    result_.batches += trainer.consumed;
    const SimJob& job = *FindJob(trainer.stream);
    const bool fails = job.expected == protocol::JobState::kFailed;
    const bool over = job.cancel_sent || fails || Excused(job) || trainer.is_consumer;
    if (trainer.consumed < trainer.wanted && !over) {
      Violation(StrCat("I12: stream ", trainer.stream, " rank ", trainer.rank, " has ",
                       trainer.consumed, " of ", trainer.wanted, " batches"));
    }
  }
  result_.tasks = audit_.commits();
  if (core_ == nullptr) return;
  CheckCore();
  if (options_.costs) CheckCosts();
  if (Finished() && core_->gauges().leases != 0)
    Violation("I9: leases are left after everything ended");
}

}  // namespace patchbay::sim
