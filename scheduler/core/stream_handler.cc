#include "scheduler/core/stream_handler.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "scheduler/core/job_access.h"
#include "scheduler/policy/back_off.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

using protocol::SlotRow;
using protocol::SlotState;

namespace {
/// Whether the code of a shard means only that this attempt is void, and not that the input is bad.
bool IsVoid(std::int32_t code) {
  const auto status = static_cast<absl::StatusCode>(code);
  return status == absl::StatusCode::kFailedPrecondition ||
         status == absl::StatusCode::kAlreadyExists || status == absl::StatusCode::kCancelled;
}

constexpr TimeMs kSayWaitMs = 1'000;

/// Memory of the endpoint in bytes, which is about its size in StreamDescribed.
std::size_t BytesOf(const protocol::TrainerEndpoint& endpoint) {
  return sizeof(endpoint) + endpoint.host_identity.size() + endpoint.node.size() +
         endpoint.socket_name.size() + endpoint.remote_address.size() +
         endpoint.stream_secret.size();
}

/// Bytes of the endpoints of all ranks, with this one in place of its rank's present one.
std::size_t EndpointBytes(const Stream& stream, const protocol::AttachTrainer& message) {
  std::size_t bytes = BytesOf(message.endpoint);
  for (const auto& [rank, trainer] : stream.trainers) {
    bytes += rank == message.rank ? 0 : BytesOf(trainer.endpoint);
  }
  return bytes;
}

}  // namespace

StreamHandler::StreamHandler(const EventContext& event, const CoreOptions& options,
                             JournalBarrier& barrier, JobLogs& logs, const StreamParts& parts)
    : event_(event),
      options_(options),
      barrier_(barrier),
      table_(barrier.table()),
      logs_(logs),
      peers_(parts.peers),
      worker_table_(parts.worker_table),
      book_(parts.book),
      charges_(parts.charges),
      recovery_(parts.recovery),
      streams_(parts.streams),
      units_(parts.units),
      shards_(parts.shards),
      slots_(parts.slots),
      dispatch_(parts.dispatch),
      lifecycle_(parts.lifecycle) {}

/// The attached trainer that this connection is; null, and refused, when it is none.
Trainer* StreamHandler::TrainerOf(const Request& request, JobId stream, std::uint32_t rank) {
  Trainer* trainer = streams_.Find(RankId{stream, rank});
  if (trainer == nullptr || trainer->peer != request.peer ||
      trainer->state == TrainerState::kForgotten) {
    barrier_.Refuse(request, FailedPrecondition("receive message: attach to the stream first"));
    return nullptr;
  }
  trainer->last_seen = event_.now;
  if (trainer->state == TrainerState::kSuspended) trainer->state = TrainerState::kAttached;
  return trainer;
}

StatusOr<Stream*> StreamHandler::Open(JobId id) {
  const Job* job = table_.Find(id);
  if (job == nullptr || !job->IsStream()) {
    return NotFound("open stream: ", id, ": no such stream job");
  }
  if (IsEnded(job->state)) return FailedPrecondition("open stream: ", id, ": the job has ended");
  if (!job->PlanIsReady()) return Unavailable("open stream: ", id, ": its plan is not ready yet");
  if (Stream* open = streams_.Find(id); open != nullptr) return open;
  Stream stream;
  stream.job = id;
  stream.priority = job->priority;
  stream.on_hold = job->on_hold;
  stream.account = shards_.AccountOfStream(id);
  stream.empty_since = event_.now;
  Status status = ReadStreamPlan(job->tasks.back().result, job->world_size, stream);
  if (status.ok() && streams_.streams().size() >= kMaxStreams) {
    status = ResourceExhausted("open stream: ", id, ": too many streams");
  }
  if (!status.ok()) {
    End(id, JobState::kFailed, OutcomeOf(status));
    return status;
  }
  Stream& opened = streams_.Add(std::move(stream));
  units_.EndIfDone(opened);
  return &opened;
}

Status StreamHandler::CheckAttach(const Request& request, const protocol::AttachTrainer& message,
                                  const Stream& stream) const {
  const auto refuse = [&](std::string_view cause) {
    return InvalidArgument("attach trainer: stream ", stream.job, ": ", cause);
  };
  const Job& job = *table_.Find(stream.job);
  if (request.identity->role != Role::kOperator && request.identity->key_name != job.submitter) {
    return PermissionDenied("attach trainer: stream ", stream.job,
                            ": it was submitted with another key");
  }
  const bool has_units = !stream.geometry.units.empty();
  if (message.world_size != stream.geometry.world_size ||
      (message.rank >= message.world_size && !has_units)) {
    return refuse(StrCat("rank ", message.rank, " of ", message.world_size, ", the plan is for ",
                         stream.geometry.world_size, " ranks"));
  }
  if (message.slots.size() > kMaxRingSlots) return refuse("too many slots");
  if (message.holders.size() > kMaxRingHolders) return refuse("too many processes have its ring");
  if (EndpointBytes(stream, message) > kMaxEndpointBytes) {
    return refuse(
        StrCat("the addresses of its ranks take more than ", kMaxEndpointBytes, " bytes"));
  }
  if (message.first_epoch > kMaxEpoch) {
    return refuse(StrCat("epoch ", message.first_epoch, " is past the last one, ", kMaxEpoch));
  }
  if (message.first_batch >= BatchesPerEpoch(stream.geometry)) {
    return refuse("the first batch lies behind the epoch's last");
  }
  if (!has_units) PB_RETURN_IF_ERROR(CheckStart(message, stream));
  PB_RETURN_IF_ERROR(worker_table_.CheckReach(message.endpoint, stream.job));
  const auto dead = stream.dead_incarnations.find(message.rank);
  if (message.trainer_incarnation == 0 || (dead != stream.dead_incarnations.end() &&
                                           Contains(dead->second, message.trainer_incarnation))) {
    if (has_units) {
      return Aborted("attach trainer: stream ", stream.job,
                     ": this consumer was silent, and its units went to others: start over");
    }
    return Aborted("attach trainer: stream ", stream.job, ": another process has rank ",
                   message.rank, " now: give every process a rank of its own, or end the other");
  }
  return units_.CheckNamed(stream, message);
}

/// A rank's first attach must name the job's start, or the ranks would not see the same batches; a
/// later attach continues at the rank's position. After a restart the scheduler does not know
/// earlier attaches.
Status StreamHandler::CheckStart(const protocol::AttachTrainer& message,
                                 const Stream& stream) const {
  const Position first{message.first_epoch, message.first_batch};
  const Position start = stream.start.value_or(first);
  const bool first_attach =
      !recovery_.IsFromBefore(stream.job) && stream.seen.count(message.rank) == 0;
  if (first == start || (first > start && !first_attach)) return absl::OkStatus();
  return FailedPrecondition("attach trainer: stream ", stream.job, ": rank ", message.rank,
                            " begins at epoch ", first.epoch, ", batch ", first.batch,
                            ", the job at epoch ", start.epoch, ", batch ", start.batch);
}

void StreamHandler::On(const Request& request, protocol::AttachTrainer&& message) {
  const Job* const job = table_.Find(message.stream);
  if (job != nullptr && job->EndedWhole() && MaySee(*request.identity, *job)) {
    return barrier_.Answer(request, protocol::UnitsAssigned{job->id, message.rank, {}, true});
  }
  StatusOr<Stream*> opened = Open(message.stream);
  if (!opened.ok()) return barrier_.Refuse(request, opened.status());
  Stream& stream = **opened;
  if (const Status fits = CheckAttach(request, message, stream); !fits.ok()) {
    return barrier_.Refuse(request, fits);
  }
  const auto before = stream.trainers.find(message.rank);
  const bool known =
      before != stream.trainers.end() && before->second.incarnation == message.trainer_incarnation;
  if (!known) {
    if (before != stream.trainers.end()) DropTrainer(stream, message.rank, true);
    AttachFresh(stream, message);
  }
  Trainer& trainer = stream.trainers.at(message.rank);
  if (known) {
    slots_.CatchUp(trainer, message);
    const std::set<std::int64_t> named(message.holders.begin(), message.holders.end());
    std::erase_if(trainer.holders, [&](std::int64_t pid) { return named.count(pid) == 0; });
  }
  const bool moved = !known || !(trainer.endpoint == message.endpoint);
  trainer.endpoint = std::move(message.endpoint);
  trainer.endpoint.rank = message.rank;
  trainer.peer = request.peer;
  trainer.state = TrainerState::kAttached;
  trainer.last_seen = event_.now;
  peers_.BindTrainer(request.peer, {stream.job, message.rank});
  stream.seen.insert(message.rank);
  stream.empty_since = 0;
  for (const SlotRow& row : message.slots) slots_.TakeRow(stream, trainer, row);
  units_.Tell(stream, trainer);
  for (const LeaseNumber& number : trainer.leases) {
    if (book_.At(number).phase == ShardPhase::kFencing) shards_.SendFence(book_.At(number));
  }
  if (moved) DescribeToWorkers(stream);
  slots_.CutGrants(stream, trainer);
  streams_.MarkAllChanged();
  barrier_.Answer(request, protocol::TrainerAttached{table_.incarnation(), stream.plan_digest,
                                                     stream.geometry});
}

/// A trainer this scheduler has not seen: a new process, or one of a former incarnation's.
void StreamHandler::AttachFresh(Stream& stream, const protocol::AttachTrainer& message) {
  Trainer& trainer = stream.trainers[message.rank];
  trainer.stream = stream.job;
  trainer.rank = message.rank;
  trainer.incarnation = message.trainer_incarnation;
  trainer.pid = message.pid;
  trainer.next = {message.first_epoch, message.first_batch};
  if (stream.patches_made == 0 && stream.geometry.units.empty())
    stream.patches_made = PatchesBefore(stream.geometry, trainer.next);
  units_.TakeNamed(stream, trainer, message.units);
  for (Worker& worker : worker_table_.workers()) worker.barred.erase({stream.job, message.rank});
  if (recovery_.IsFromBefore(stream.job)) {
    trainer.holders.insert(message.holders.begin(), message.holders.end());
  }
}

void StreamHandler::DescribeToWorkers(const Stream& stream) {
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.peer != 0 && worker.streams_fetched.count(stream.job) != 0) {
      barrier_.Send(worker.peer, 0, Describe(stream));  // without the plan: it has that
    }
  }
}

protocol::StreamDescribed StreamHandler::Describe(const Stream& stream) const {
  protocol::StreamDescribed described;
  described.stream = stream.job;
  described.plan_digest = stream.plan_digest;
  described.plan_bytes = stream.plan.size();
  described.manifest_bytes = stream.manifest.size();
  described.geometry = stream.geometry;
  described.capacity = Capacity(stream.geometry);
  described.read_prefixes = table_.Find(stream.job)->read_prefixes;
  for (const auto& [rank, trainer] : stream.trainers) {
    described.trainers.push_back(trainer.endpoint);
  }
  return described;
}

void StreamHandler::On(const Request& request, protocol::FetchStream&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  StatusOr<Stream*> stream = Open(message.stream);
  if (!stream.ok()) return barrier_.Refuse(request, stream.status());
  worker->streams_fetched.insert(message.stream);
  protocol::StreamDescribed described = Describe(**stream);
  const std::string& plan = (*stream)->plan;
  const std::string& manifest = (*stream)->manifest;
  const std::uint64_t from = std::min<std::uint64_t>(message.offset, plan.size() + manifest.size());
  constexpr std::size_t kMost = protocol::kMaxInlineResultBytes;
  if (from < plan.size()) described.plan = plan.substr(from, kMost);
  const std::uint64_t skipped = std::max<std::uint64_t>(from, plan.size()) - plan.size();
  described.manifest = manifest.substr(skipped, kMost - described.plan.size());
  barrier_.Answer(request, std::move(described));
}

void StreamHandler::On(const Request& request, protocol::AnnounceSlots&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.rank);
  if (trainer == nullptr) return;
  Stream& stream = *streams_.Find(message.stream);
  for (const SlotRow& row : message.slots) slots_.TakeRow(stream, *trainer, row);
  slots_.CutGrants(stream, *trainer);
}

void StreamHandler::On(const Request& request, protocol::ShardsCounted&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.rank);
  if (trainer == nullptr) return;
  Stream& stream = *streams_.Find(message.stream);
  for (const auto& item : message.items) {
    // The shard arrived under a former scheduler's lease, maybe in another slot than its batch has
    // here: the answer to its fence says that it counted, and in which slot.
    if (trainer->unknown.count(item.shard) != 0) continue;
    if (item.shard.rank == message.rank) shards_.Count(*trainer, item.shard, &item.lease);
  }
  slots_.CutGrants(stream, *trainer);
}

void StreamHandler::On(const Request& request, protocol::PeersDropped&& message) {
  if (TrainerOf(request, message.stream, message.rank) == nullptr) return;
  drop_reports_.Take(std::move(message));
}

void StreamHandler::On(const Request& request, protocol::ShardFenced&& message) {
  Trainer* trainer = TrainerOf(request, message.stream, message.shard.rank);
  if (trainer == nullptr) return;
  Stream& stream = *streams_.Find(message.stream);
  if (slots_.NamesAnother(*trainer, message)) return slots_.TakeRow(stream, *trainer, message.row);
  const bool unknown = message.lease == LeaseNumber{table_.incarnation(), 0} &&
                       trainer->unknown.erase(message.shard) != 0;
  const Lease* lease = book_.Find(message.lease);
  const bool fenced = lease != nullptr && lease->is_shard && lease->stream == message.stream &&
                      lease->shard == message.shard && lease->phase == ShardPhase::kFencing;
  if (!unknown && !fenced) return;
  slots_.TakeFenceRow(*trainer, message);
  if (message.already_counted) shards_.Count(*trainer, message.shard, &message.lease);
  if (fenced) shards_.Resolve(message.lease);
  if (unknown) slots_.MakeKnown(*trainer, message.shard);
  slots_.CutGrants(stream, *trainer);
}

void StreamHandler::On(const Request& request, protocol::DetachTrainer&& message) {
  Stream* const open = streams_.Find(message.stream);
  if (open == nullptr) return barrier_.Answer(request, protocol::TrainerDetached{});
  Stream& stream = *open;
  if (VisibleJob(barrier_, request, message.stream) == nullptr) return;
  const auto trainer = stream.trainers.find(message.rank);
  if (trainer != stream.trainers.end()) {
    if (trainer->second.peer != request.peer && trainer->second.state == TrainerState::kAttached) {
      return barrier_.Refuse(
          request, FailedPrecondition("detach trainer: another connection has this rank"));
    }
    DropTrainer(stream, message.rank);
    if (stream.trainers.empty()) stream.empty_since = event_.now;
    DescribeToWorkers(stream);
  }
  // Consumers come and go; the units end the stream.
  if (!stream.geometry.units.empty()) return barrier_.Answer(request, protocol::TrainerDetached{});
  const std::set<std::uint32_t>& detached = table_.Find(message.stream)->detached;
  if (message.rank < stream.geometry.world_size && detached.count(message.rank) == 0) {
    barrier_.Emit(DetachRecord{message.stream, message.rank});
  }
  if (detached.size() == stream.geometry.world_size) End(message.stream, JobState::kDone, {});
  barrier_.Answer(request, protocol::TrainerDetached{});
}

/// Voids the leases of a trainer that was silent for too long. Its slots are kept in case it
/// returns.
void StreamHandler::ForgetTrainer(Trainer& trainer) {
  trainer.state = TrainerState::kForgotten;
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = book_.At(number);
    if (lease.phase == ShardPhase::kMaking) shards_.TakeBack(lease);
    if (lease.phase == ShardPhase::kReturned) shards_.Fence(lease, 0);
  }
}

/// `died`: it did not leave by itself.
void StreamHandler::DropTrainer(Stream& stream, std::uint32_t rank, bool died) {
  Trainer& trainer = stream.trainers.at(rank);
  units_.TakeBack(stream, trainer, died);
  shards_.Drop(trainer);
  Remember(stream.dead_incarnations[rank], trainer.incarnation);
  stream.trainers.erase(rank);
  auto& dead = stream.dead_incarnations;
  if (dead.size() > kMaxDeadConsumers) dead.erase(dead.begin());
}

/// Consumers of units that were silent for too long: nobody attaches with their rank again. One
/// that still has a connection is frozen, and did not die of its unit.
void StreamHandler::DropForgotten(Stream& stream) {
  std::vector<std::uint32_t> forgotten;
  for (const auto& [rank, trainer] : stream.trainers) {
    if (trainer.state == TrainerState::kForgotten) forgotten.push_back(rank);
  }
  for (const std::uint32_t rank : forgotten) {
    DropTrainer(stream, rank, stream.trainers.at(rank).peer == 0);
  }
  if (!forgotten.empty()) DescribeToWorkers(stream);
}

void StreamHandler::End(JobId job, JobState state, Outcome&& outcome) {
  if (outcome.code != 0) logs_.Add(job, "stream ended", outcome);
  Cut(outcome, kMaxOutcomeBytes);
  barrier_.Emit(EndStreamRecord{job, state, std::move(outcome)});
}

void StreamHandler::EndCollected() {
  for (auto ending = streams_.TakeEnding(); !ending.empty(); ending = streams_.TakeEnding()) {
    for (StreamEnd& end : ending) {
      const Job* job = table_.Find(end.job);
      if (job == nullptr || IsEnded(job->state)) continue;
      end.shard.has_value() ? FailShard(end.job, *end.shard, std::move(end.outcome))
                            : End(end.job, end.state, std::move(end.outcome));
    }
  }
}

/// The shard cannot be made. In a stream with units, its unit fails alone, and the consumer that
/// waits for it starts over.
void StreamHandler::FailShard(JobId job, const ShardId& shard, Outcome&& outcome) {
  Stream* const stream = streams_.Find(job);
  if (stream == nullptr || stream->geometry.units.empty()) {
    return End(job, JobState::kFailed, std::move(outcome));
  }
  const Outcome told = units_.FailOf(*stream, shard, std::move(outcome));
  const auto trainer = stream->trainers.find(shard.rank);
  if (trainer == stream->trainers.end()) return;
  barrier_.SendDurable(trainer->second.peer, 0, protocol::StreamFailed{job, told});
  DropTrainer(*stream, shard.rank);
  DescribeToWorkers(*stream);
}

void StreamHandler::KeyRevoked(const std::string& name) {
  std::vector<JobId> open;
  for (const auto& [id, job] : table_.jobs()) {
    if (job.IsStream() && !IsEnded(job.state) && job.submitter == name) open.push_back(id);
  }
  for (const JobId id : open) {
    End(id, JobState::kFailed,
        OutcomeOf(PermissionDenied("stream: the key ", name, " was revoked")));
  }
}

void StreamHandler::Close(const Job& job) {
  Stream* const stream = streams_.Find(job.id);
  if (stream == nullptr) return;
  Outcome why = job.stream_outcome;
  if (why.code == 0) why = OutcomeOf(Cancelled("stream: the job was cancelled"));
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, trainer] : stream->trainers) {
    protocol::Body end = protocol::StreamFailed{job.id, why};
    if (job.EndedWhole()) end = protocol::UnitsAssigned{job.id, rank, {}, true};
    barrier_.SendDurable(trainer.peer, 0, std::move(end));
    ranks.push_back(rank);
  }
  for (const std::uint32_t rank : ranks) DropTrainer(*stream, rank);
  for (Worker& worker : worker_table_.workers()) worker.streams_fetched.erase(job.id);
  streams_.Erase(job.id);
}

void StreamHandler::Leave(PeerId peer) {
  Trainer* trainer = streams_.Find(peers_.RankOf(peer));
  if (trainer == nullptr || trainer->peer != peer) return;
  trainer->peer = 0;
  if (trainer->state == TrainerState::kAttached) trainer->state = TrainerState::kSuspended;
}

std::optional<bool> StreamHandler::Heard(PeerId peer, const protocol::Heartbeat& heard) {
  Trainer* trainer = streams_.Find(peers_.RankOf(peer));
  if (trainer == nullptr || trainer->peer != peer || trainer->state == TrainerState::kForgotten) {
    return std::nullopt;
  }
  trainer->last_seen = event_.now;
  trainer->heard = heard;
  trainer->state = TrainerState::kAttached;
  streams_.MarkChanged(trainer->stream);
  units_.Tell(*streams_.Find(peers_.RankOf(peer).stream), *trainer);
  return !trainer->behind;
}

void StreamHandler::Tick() {
  std::vector<JobId> open;
  for (const auto& [id, stream] : streams_.streams()) open.push_back(id);
  for (const JobId id : open) {
    Stream& stream = *streams_.Find(id);
    bool anyone = false;
    for (auto& [rank, trainer] : stream.trainers) {
      TickTrainer(stream, trainer);
      anyone = anyone || trainer.state != TrainerState::kForgotten;
    }
    if (!stream.geometry.units.empty()) DropForgotten(stream);
    if (anyone) stream.empty_since = 0;
    if (!anyone && stream.empty_since == 0) stream.empty_since = event_.now;
    if (!anyone && event_.now - stream.empty_since >= options_.abandon_stream_ms) {
      End(id, JobState::kCancelled, OutcomeOf(Cancelled("stream: no trainer")));
      continue;
    }
    dispatch_.TickStall(stream);
    TickWait(stream);
    if (const auto why = dispatch_.TickStarved(stream); why.has_value()) {
      End(id, JobState::kFailed, OutcomeOf(*why));
    }
  }
}

/// Logs which processes the stream waits for, once the wait is longer than a normal restart.
void StreamHandler::TickWait(Stream& stream) {
  std::string now_for = dispatch_.WaitsFor(stream);
  if (now_for != stream.waits_for) {
    stream.waits_for = std::move(now_for);
    stream.waits_since = event_.now;
  }
  const bool due = !stream.waits_for.empty() && stream.waits_since != 0 &&
                   event_.now - stream.waits_since >= kSayWaitMs;
  if (!due) return;
  logs_.Add(stream.job, StrCat("the stream waits for ", stream.waits_for));
  stream.waits_since = 0;  // said
}

void StreamHandler::TickTrainer(Stream& stream, Trainer& trainer) {
  const TimeMs silent = event_.now - trainer.last_seen;
  if (trainer.state != TrainerState::kForgotten && silent >= options_.forget_trainer_ms) {
    ForgetTrainer(trainer);
  } else if (trainer.state == TrainerState::kAttached && silent >= options_.suspend_trainer_ms) {
    trainer.state = TrainerState::kSuspended;
  }
  if (event_.now >= trainer.leases_due) TickLeases(trainer);
  if (trainer.state == TrainerState::kForgotten) return;
  slots_.ResendFences(stream, trainer, options_.resend_ms);
  slots_.CutGrants(stream, trainer);
}

/// Repeats what was not answered in time, and fences what was not counted.
void StreamHandler::TickLeases(Trainer& trainer) {
  for (const LeaseNumber& number : trainer.leases) TickRevoking(book_.At(number));
  trainer.leases_due = std::numeric_limits<TimeMs>::max();
  for (const LeaseNumber& number : trainer.leases) {
    Lease& lease = book_.At(number);
    if (lease.phase == ShardPhase::kRevoking) shards_.LookBy(lease, event_.now);
    const bool fencing = lease.phase == ShardPhase::kFencing;
    if (!fencing && lease.phase != ShardPhase::kReturned) continue;
    const TimeMs due = lease.phase_at + (fencing ? options_.resend_ms : options_.count_wait_ms);
    if (event_.now < due || trainer.state == TrainerState::kForgotten) {
      shards_.LookBy(lease, due);
    } else {
      fencing ? shards_.SendFence(lease) : shards_.Uncounted(lease);
    }
  }
}

void StreamHandler::On(const Request& request, protocol::ShardsReturned&& message) {
  Worker* worker = peers_.WorkerOf(request);
  if (worker == nullptr) return;
  for (const auto& item : message.items) ReturnShard(*worker, item);
  lifecycle_.FinishDrains(*worker);
}

void StreamHandler::ReturnShard(Worker& worker, const protocol::ShardsReturned::Item& item) {
  Lease* const found = book_.Find(item.lease);
  const bool own = found != nullptr && found->worker == worker.id;
  const bool is_lease = own && found->worker_incarnation == worker.incarnation;
  if (is_lease || found == nullptr) charges_.Report(worker, found, item.lease, item.cost);
  if (is_lease && found->phase == ShardPhase::kRevoking) return shards_.Fence(*found, 0);
  if (!own || !found->is_shard || found->phase != ShardPhase::kMaking) {
    if (worker.former_shards.erase(item.lease) != 0) streams_.MarkAllChanged();
    return;
  }
  Lease& lease = *found;
  worker.progress_at = event_.now;
  if (item.outcome.code == 0) worker.shard_pace.Measure((event_.now - worker.shard_since) * 1000);
  worker.shard_since = event_.now;
  shards_.Return(lease, item.stages);
  if (item.outcome.code != 0) ShardFailed(lease, worker, item.outcome);
}

void StreamHandler::ShardFailed(Lease& lease, Worker& worker, Outcome outcome) {
  const JobId stream = lease.stream;
  Trainer* trainer = streams_.Find(RankId{stream, lease.shard.rank});
  Shard* shard = shards_.FindShard(lease);
  bool fatal = !IsRetryable(outcome.code) && !IsVoid(outcome.code);
  if (outcome.code == static_cast<std::int32_t>(absl::StatusCode::kUnavailable)) {
    Bar(worker, lease, outcome);
    if (trainer != nullptr) {
      if (trainer->failing_since == 0) trainer->failing_since = event_.now;
      fatal = event_.now - trainer->failing_since > 2 * options_.no_worker_ms;
    }
  } else if (shard != nullptr && IsVoid(outcome.code)) {
    fatal = ++shard->void_attempts >= kMaxVoidAttempts;
  } else if (shard != nullptr) {
    fatal = fatal || ++shard->attempts >= kMaxShardAttempts;
  }
  if (fatal) {
    const ShardId shard_id = lease.shard;
    const std::string doing = StrCat("make shard ", shard_id.ToString());
    return FailShard(stream, shard_id, OutcomeOf(Annotate(StatusOf(outcome), doing)));
  }
  shards_.Fence(lease, 0);
}

/// Keeps the pair apart for a while, and tells the job's log why: a trainer that one node cannot
/// reach would otherwise be served by the others in silence.
void StreamHandler::Bar(Worker& worker, const Lease& lease, const Outcome& why) {
  const TimeMs until = event_.now + options_.bar_ms;
  const bool fresh = worker.barred.insert_or_assign({lease.stream, lease.shard.rank}, until).second;
  worker_table_.LookBy(worker.id, until);
  if (!fresh) return;
  logs_.Add(lease.stream,
            StrCat("node ", worker.node, " worker ", worker.index, " cannot deliver to rank ",
                   lease.shard.rank),
            why);
}

void StreamHandler::TickRevoking(Lease& lease) {
  if (lease.phase != ShardPhase::kRevoking) return;
  Worker& worker = worker_table_.at(lease.worker);
  const bool lives = worker.incarnation == lease.worker_incarnation &&
                     (worker.state == WorkerState::kUp || worker.state == WorkerState::kDraining);
  if (lives && event_.now - lease.phase_at < options_.lease_ms) {
    if (event_.now - lease.revoke_sent < options_.resend_ms) return;
    // A connection that broke may have taken the message, or the answer, with it.
    lease.revoke_sent = event_.now;
    return book_.Revoke(lease);
  }
  if (lives) lifecycle_.Condemn(worker);
  shards_.Fence(lease, lease.worker_pid);
}

}  // namespace patchbay::scheduler
