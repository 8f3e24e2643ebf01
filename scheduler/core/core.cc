// Events in, to the parts, and answers out.
#include "scheduler/core/core.h"

#include <algorithm>
#include <utility>

#include "scheduler/core/parts.h"
#include "scheduler/policy/roles.h"

namespace patchbay::scheduler {

void Actions::Clear() {
  records.clear();
  sends.clear();
  disconnects.clear();
  host_requests.clear();
}

Core::Core(const CoreOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Core::~Core() = default;

Status Core::LoadSnapshot(std::uint64_t sequence, std::string_view snapshot) {
  return parts_->barrier.LoadSnapshot(sequence, snapshot);
}

Status Core::Replay(std::uint64_t sequence, std::string_view record) {
  return parts_->barrier.Replay(sequence, record);
}

void Core::SkipLost(std::uint64_t records) { parts_->barrier.SkipLost(records); }

void Core::Start(Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Start(); });
}

void Core::StopGranting() { parts_->grants = false; }

void Core::PeerJoined(PeerId peer, PeerIdentity identity) {
  if (identity.team == model::kDefaultTeam) identity.team.clear();
  parts_->peers.Join(peer, std::move(identity));
}

void Core::PeerGone(PeerId peer, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->PeerGone(peer); });
}

void Core::KeysRevoked(const std::vector<std::string>& names, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] {
    for (const std::string& name : names) parts_->stream_handler.KeyRevoked(name);
  });
}

void Core::PeersDropped(std::vector<protocol::PeersDropped::Item>&& items) {
  parts_->stream_handler.TakeOwnDropped(std::move(items));
}

void Core::StateFree(std::uint64_t bytes) { parts_->job_handler.TakeStateFree(bytes); }

protocol::ClusterDescribed Core::Describe(const PeerIdentity& identity, std::size_t jobs_max) {
  return parts_->job_handler.Describe(identity, jobs_max);
}

protocol::TeamsDescribed Core::DescribeTeams(const PeerIdentity& identity) {
  return parts_->team_handler.Describe(identity);
}

void Core::Receive(PeerId peer, protocol::Envelope&& message, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Receive(peer, std::move(message)); });
}

void Core::Tick(Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Tick(); });
}

void Core::WriteUsage(Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->charges.Write(); });
}

void Core::JournalDurable(std::uint64_t sequence, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Durable(sequence); });
}

std::string Core::EncodeSnapshot() const { return parts_->barrier.table().Encode(); }
Digest Core::DurableStateHash() const { return Sha256Of(parts_->barrier.table().Encode()); }
std::uint64_t Core::last_sequence() const { return parts_->barrier.last_sequence(); }
std::uint32_t Core::incarnation() const { return parts_->barrier.table().incarnation(); }
Status Core::CheckInvariants() const { return parts_->Check(); }
CoreGauges Core::gauges() const { return parts_->Gauges(); }

Core::Parts::Parts(const CoreOptions& options_in)
    : options(options_in),
      barrier(event, [this](Effects& effects) { Apply(effects); }),
      logs(event.wall),
      worker_table(event, options, barrier),
      peers(event, barrier, worker_table),
      book(barrier, worker_table),
      charges(event, barrier, logs, fair),
      recovery(event, options, worker_table),
      places(barrier.table()),
      units(barrier, logs, recovery, streams),
      shards(event, options, barrier, fair, worker_table, book, charges, streams),
      slots(event, barrier, recovery, streams, units, shards),
      batch(event, options, barrier, logs, fair, worker_table, book, charges),
      stream_dispatch(event, options, fair, worker_table, recovery, batch, streams, shards),
      lifecycle(event, options, barrier, worker_table, book, recovery, batch, shards),
      worker_handler(event, options, barrier,
                     {peers, worker_table, book, recovery, batch, streams, lifecycle}),
      stream_handler(event, options, barrier, logs,
                     {peers, worker_table, book, charges, recovery, streams, units, shards, slots,
                      stream_dispatch, lifecycle}),
      shares(event, worker_table, book, barrier.table()),
      causes(event, barrier, fair, worker_table, recovery, batch, streams, stream_dispatch, shares),
      job_handler(event, options, barrier, logs,
                  {worker_table, book, recovery, places, batch, stream_handler, shares, causes}),
      team_handler(barrier, fair, worker_table, book, charges, streams, places, batch) {}

void Core::Parts::Begin(Instant at, Actions& actions) {
  event.now = std::max(event.now, at.steady_ms);
  event.wall = at.wall_seconds;
  event.out = &actions;
}

void Core::Parts::Finish() {
  stream_handler.EndCollected();
  for (const JobId id : places.Admit()) batch.PutBack(*barrier.table().Find(id));
  if (barrier.IsOpen() && grants) {
    fair.Advance(event.now);
    if (streams.changed() || worker_table.AnyFreed()) stream_dispatch.Dispatch();
    batch.Dispatch();
  }
  if (!grants) streams.TakeChanged();
  book.SendCollected();
  event.out = nullptr;
}

void Core::Parts::Start() {
  recovery.Begin(barrier.table().known_workers(), barrier.table().next_job());
  barrier.Start();
  fair.SetPolicy(barrier.table().teams().policy);
  for (const auto& [key, usage] : barrier.table().usage().rows()) {
    const auto& [hour, payer] = key;
    fair.Remember(fair.Of(payer.team, payer.user), usage.counted.cpu_us + usage.wasted.cpu_us,
                  event.wall - hour);
  }
  places.Start();
  std::vector<JobId> to_open;
  for (const auto& [id, job] : barrier.table().jobs()) {
    if (IsEnded(job.state)) continue;
    if (job.IsStream()) to_open.push_back(id);
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
      const Task& task = job.tasks[i];
      if (!IsEnded(task.state) && job.MayRun(task)) recovery.HoldBack({id, i});
    }
  }
  for (const JobId id : to_open) stream_handler.Open(id).IgnoreError();
}

template <typename Message>
void Core::Parts::Route(const Request& request, Message&& message) {
  constexpr bool kToWorkers = requires {
    worker_handler.On(request, std::forward<Message>(message));
  };
  constexpr bool kToStreams = requires {
    stream_handler.On(request, std::forward<Message>(message));
  };
  constexpr bool kToJobs = requires { job_handler.On(request, std::forward<Message>(message)); };
  constexpr bool kToCharges = requires { charges.On(request, std::forward<Message>(message)); };
  constexpr bool kToTeams = requires { team_handler.On(request, std::forward<Message>(message)); };
  static_assert(kToWorkers + kToStreams + kToJobs + kToCharges + kToTeams <= 1);
  if constexpr (kToWorkers) worker_handler.On(request, std::forward<Message>(message));
  if constexpr (kToStreams) stream_handler.On(request, std::forward<Message>(message));
  if constexpr (kToJobs) job_handler.On(request, std::forward<Message>(message));
  if constexpr (kToCharges) charges.On(request, std::forward<Message>(message));
  if constexpr (kToTeams) team_handler.On(request, std::forward<Message>(message));
}

void Core::Parts::Receive(PeerId peer, protocol::Envelope&& message) {
  const Peer* sender = peers.Find(peer);
  if (sender == nullptr) return event.out->disconnects.push_back(peer);
  const Request request{peer, &sender->identity, message.sender_incarnation, message.request_id};
  if (const Status allowed = CheckRole(sender->identity.role, message.body); !allowed.ok()) {
    return barrier.Refuse(request, allowed);
  }
  if (const auto* heartbeat = std::get_if<protocol::Heartbeat>(&message.body)) {
    return Heard(request, *heartbeat);
  }
  const auto* fetch = std::get_if<protocol::FetchResult>(&message.body);
  if (fetch != nullptr && sender->identity.role == Role::kWorker) {
    return worker_handler.GiveInput(request, *fetch);
  }
  std::visit([&](auto&& body) { Route(request, std::move(body)); }, std::move(message.body));
}

/// A connection that is not (or no longer) registered is told incarnation 0, which no scheduler
/// has: it registers or attaches again.
void Core::Parts::Heard(const Request& request, const protocol::Heartbeat& heartbeat) {
  const bool registered = peers.Heard(request.peer, heartbeat);
  const bool bound = stream_handler.Heard(request.peer, heartbeat).value_or(registered);
  // Says nothing of the journal but the incarnation, so it waits for that alone.
  if (!barrier.IsOpen()) return;
  barrier.Send(request.peer, request.request_id,
               protocol::HeartbeatSeen{bound ? barrier.table().incarnation() : 0});
}

void Core::Parts::PeerGone(PeerId peer) {
  if (peers.Find(peer) == nullptr) return;
  stream_handler.Leave(peer);
  peers.Leave(peer);
}

void Core::Parts::Durable(std::uint64_t sequence) {
  const JournalBarrier::Released released = barrier.Release(sequence);
  for (const WorkerId id : released.workers) worker_table.Reindex(worker_table.at(id));
  if (!released.workers.empty()) {
    batch.LookAgain();
    streams.MarkAllChanged();
  }
  for (const TaskId& id : released.tasks) batch.Enqueue(id);
}

void Core::Parts::Tick() {
  worker_handler.TickRecovery();
  lifecycle.Tick();
  stream_handler.Tick();
  batch.Tick();
  charges.Tick();
  job_handler.Tick();
  fair.SetCapacity(worker_table.Up());
  streams.MarkAllChanged();
}

void Core::Parts::Apply(Effects& effects) {
  for (const TaskId& id : effects.stopped) batch.Stop(id);
  for (const TaskId& id : effects.runnable) barrier.Hold(id);
  for (const JobId id : effects.ended) {
    Job* job = barrier.table().Find(id);
    if (job == nullptr) continue;
    batch.Forget(*job);
    if (job->IsStream()) places.Leave(*job);
    stream_handler.Close(*job);
    logs.Add(id, StrCat("job ended: ", job->tasks_done, " tasks done, ", job->tasks_failed,
                        " failed, ", job->tasks_cancelled, " cancelled"));
  }
  for (const JobId id : effects.forgotten) logs.Forget(id);
  for (const JobId id : effects.planned) stream_handler.Open(id).IgnoreError();
}

CoreGauges Core::Parts::Gauges() const {
  CoreGauges gauges;
  gauges.jobs = barrier.table().jobs().size();
  gauges.tasks_ready = batch.queued();
  gauges.leases = book.leases().size();
  gauges.workers = worker_table.places();
  gauges.streams = streams.streams().size();
  gauges.undurable_records = barrier.last_sequence() - barrier.durable();
  gauges.tasks_committed = batch.counts().committed;
  gauges.stale_reports = batch.counts().stale;
  gauges.shards_counted = shards.shards_counted();
  gauges.leases_expired = lifecycle.leases_expired();
  return gauges;
}

}  // namespace patchbay::scheduler
