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
  return parts_->gate.LoadSnapshot(sequence, snapshot);
}

Status Core::Replay(std::uint64_t sequence, std::string_view record) {
  return parts_->gate.Replay(sequence, record);
}

void Core::SkipLost(std::uint64_t records) { parts_->gate.SkipLost(records); }

void Core::Start(Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Start(); });
}

void Core::PeerJoined(PeerId peer, PeerIdentity identity) {
  parts_->peers.Join(peer, std::move(identity));
}

void Core::PeerGone(PeerId peer, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->PeerGone(peer); });
}

void Core::KeysRevoked(const std::vector<std::string>& names, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] {
    for (const std::string& name : names) parts_->stream_desk.KeyRevoked(name);
  });
}

void Core::PeersDropped(std::vector<protocol::PeersDropped::Item>&& items) {
  parts_->stream_desk.TakeOwnDropped(std::move(items));
}

void Core::Receive(PeerId peer, protocol::Envelope&& message, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Receive(peer, std::move(message)); });
}

void Core::Tick(Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Tick(); });
}

void Core::JournalDurable(std::uint64_t sequence, Instant now, Actions& out) {
  parts_->Handle(now, out, [&] { parts_->Durable(sequence); });
}

std::string Core::EncodeSnapshot() const { return parts_->gate.table().Encode(); }
Digest Core::DurableStateHash() const { return Sha256Of(parts_->gate.table().Encode()); }
std::uint64_t Core::last_sequence() const { return parts_->gate.last_sequence(); }
std::uint32_t Core::incarnation() const { return parts_->gate.table().incarnation(); }
Status Core::CheckInvariants() const { return parts_->Check(); }
CoreGauges Core::gauges() const { return parts_->Gauges(); }

Core::Parts::Parts(const CoreOptions& options_in)
    : options(options_in),
      gate(turn, [this](Effects& effects) { Apply(effects); }),
      logs(turn),
      roster(turn, options, gate),
      peers(turn, gate, roster),
      book(gate, roster),
      recovery(turn, options, roster),
      shards(turn, options, gate, roster, book, streams),
      slots(turn, gate, recovery, streams, shards),
      batch(turn, options, gate, logs, roster, book),
      stream_dispatch(turn, options, roster, recovery, streams, shards),
      fate(turn, options, gate, roster, book, recovery, batch, shards),
      worker_desk(turn, options, gate, peers, roster, book, recovery, batch, streams, fate),
      stream_desk(turn, options, gate, logs,
                  {peers, roster, book, recovery, streams, shards, slots, stream_dispatch, fate}),
      job_desk(turn, options, gate, logs, roster, book, recovery, stream_desk) {}

void Core::Parts::Begin(Instant at, Actions& actions) {
  turn.now = std::max(turn.now, at.steady_ms);
  turn.wall = at.wall_seconds;
  turn.out = &actions;
}

void Core::Parts::Finish() {
  stream_desk.EndCollected();
  if (gate.IsOpen()) {
    if (streams.changed()) stream_dispatch.Dispatch();
    batch.Dispatch();
  }
  book.SendCollected();
  turn.out = nullptr;
}

void Core::Parts::Start() {
  recovery.Begin(gate.table().known_workers(), gate.table().next_job());
  gate.Start();
  std::vector<JobId> to_open;
  for (const auto& [id, job] : gate.table().jobs()) {
    if (IsEnded(job.state)) continue;
    if (job.IsStream()) to_open.push_back(id);
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
      const Task& task = job.tasks[i];
      if (!IsEnded(task.state) && job.MayRun(task)) recovery.HoldBack({id, i});
    }
  }
  for (const JobId id : to_open) stream_desk.Open(id).IgnoreError();
}

template <typename Message>
void Core::Parts::Route(const Request& request, Message&& message) {
  constexpr bool kToWorkers = requires { worker_desk.On(request, std::forward<Message>(message)); };
  constexpr bool kToStreams = requires { stream_desk.On(request, std::forward<Message>(message)); };
  constexpr bool kToJobs = requires { job_desk.On(request, std::forward<Message>(message)); };
  static_assert(kToWorkers + kToStreams + kToJobs <= 1);
  if constexpr (kToWorkers) worker_desk.On(request, std::forward<Message>(message));
  if constexpr (kToStreams) stream_desk.On(request, std::forward<Message>(message));
  if constexpr (kToJobs) job_desk.On(request, std::forward<Message>(message));
}

void Core::Parts::Receive(PeerId peer, protocol::Envelope&& message) {
  const Peer* sender = peers.Find(peer);
  if (sender == nullptr) return turn.out->disconnects.push_back(peer);
  const Request request{peer, &sender->identity, message.sender_incarnation, message.request_id};
  if (const Status allowed = CheckRole(sender->identity.role, message.body); !allowed.ok()) {
    return gate.Refuse(request, allowed);
  }
  if (std::holds_alternative<protocol::Heartbeat>(message.body)) return Heard(request);
  const auto* fetch = std::get_if<protocol::FetchResult>(&message.body);
  if (fetch != nullptr && sender->identity.role == Role::kWorker) {
    return worker_desk.GiveInput(request, *fetch);
  }
  std::visit([&](auto&& body) { Route(request, std::move(body)); }, std::move(message.body));
}

/// A connection that is not (or no longer) registered is told incarnation 0, which no scheduler
/// has: it registers or attaches again.
void Core::Parts::Heard(const Request& request) {
  const bool registered = peers.Heard(request.peer);
  const bool bound = stream_desk.Heard(request.peer).value_or(registered);
  // Says nothing of the journal but the incarnation, so it waits for that alone.
  if (!gate.IsOpen()) return;
  gate.Send(request.peer, request.request_id,
            protocol::HeartbeatSeen{bound ? gate.table().incarnation() : 0});
}

void Core::Parts::PeerGone(PeerId peer) {
  if (peers.Find(peer) == nullptr) return;
  stream_desk.Leave(peer);
  peers.Leave(peer);
}

void Core::Parts::Durable(std::uint64_t sequence) {
  const JournalGate::Released released = gate.Release(sequence);
  for (const WorkerId id : released.workers) roster.Reindex(roster.at(id));
  if (!released.workers.empty()) {
    batch.LookAgain();
    streams.MarkChanged();
  }
  for (const TaskId& id : released.tasks) batch.Enqueue(id);
}

void Core::Parts::Tick() {
  worker_desk.TickRecovery();
  fate.Tick();
  stream_desk.Tick();
  batch.Tick();
  streams.MarkChanged();
}

void Core::Parts::Apply(Effects& effects) {
  for (const TaskId& id : effects.stopped) batch.Stop(id);
  for (const TaskId& id : effects.runnable) gate.Hold(id);
  for (const JobId id : effects.ended) {
    const Job* job = gate.table().Find(id);
    if (job == nullptr) continue;
    batch.Forget(*job);
    stream_desk.Close(*job);
    logs.Add(id, StrCat("job ended: ", job->tasks_done, " tasks done, ", job->tasks_failed,
                        " failed, ", job->tasks_cancelled, " cancelled"));
  }
  for (const JobId id : effects.forgotten) logs.Forget(id);
  for (const JobId id : effects.planned) stream_desk.Open(id).IgnoreError();
}

CoreGauges Core::Parts::Gauges() const {
  CoreGauges gauges;
  gauges.jobs = gate.table().jobs().size();
  gauges.tasks_ready = batch.queued();
  gauges.leases = book.leases().size();
  gauges.workers = roster.places();
  gauges.streams = streams.streams().size();
  gauges.undurable_records = gate.last_sequence() - gate.durable();
  gauges.tasks_committed = batch.counts().committed;
  gauges.stale_reports = batch.counts().stale;
  gauges.shards_counted = shards.shards_counted();
  gauges.leases_expired = fate.leases_expired();
  return gauges;
}

}  // namespace patchbay::scheduler
