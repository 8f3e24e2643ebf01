#include "scheduler/core/core.h"

#include <utility>

#include "scheduler/core/machine.h"
#include "scheduler/policy/roles.h"

namespace patchbay::scheduler {

void Actions::Clear() {
  records.clear();
  sends.clear();
  disconnects.clear();
  host_requests.clear();
}

Core::Core(const CoreOptions& options) : machine_(std::make_unique<Machine>(options)) {}
Core::~Core() = default;

Status Core::LoadSnapshot(std::uint64_t sequence, std::string_view snapshot) {
  PB_RETURN_IF_ERROR(machine_->table.Decode(snapshot));
  machine_->last_sequence = machine_->durable = sequence;
  return absl::OkStatus();
}

Status Core::Replay(std::uint64_t sequence, std::string_view record) {
  Machine& m = *machine_;
  if (sequence != m.last_sequence + 1) {
    return absl::DataLossError(StrCat("replay journal: record ", m.last_sequence + 1,
                                      " is missing (next is ", sequence, ")"));
  }
  PB_ASSIGN_OR_RETURN(Record decoded, DecodeRecord(record));
  Effects effects;
  if (const Status applied = m.table.Apply(std::move(decoded), effects); !applied.ok()) {
    return absl::DataLossError(
        StrCat("replay journal: record ", sequence, ": ", MessageOf(applied)));
  }
  m.last_sequence = m.durable = sequence;
  return absl::OkStatus();
}

void Core::Start(Instant now, Actions& out) {
  machine_->Begin(now, out);
  machine_->Start(now, out);
  machine_->End();
}

void Core::PeerJoined(PeerId peer, PeerIdentity identity) {
  if (machine_->peers.size() >= kMaxPeers && machine_->peers.count(peer) == 0) return;
  machine_->peers[peer].identity = std::move(identity);
}

void Core::PeerGone(PeerId peer, Instant now, Actions& out) {
  machine_->Begin(now, out);
  machine_->PeerGone(peer);
  machine_->End();
}

void Core::KeysRevoked(const std::vector<std::string>& names, Instant now, Actions& out) {
  machine_->Begin(now, out);
  for (const std::string& name : names) machine_->KeyRevoked(name);
  machine_->End();
}

void Core::Receive(PeerId peer, protocol::Envelope&& message, Instant now, Actions& out) {
  machine_->Begin(now, out);
  const auto it = machine_->peers.find(peer);
  if (it == machine_->peers.end()) {
    out.disconnects.push_back(peer);
  } else {
    machine_->Receive({peer, &it->second.identity, message.sender_incarnation, message.request_id},
                      std::move(message.body));
  }
  machine_->End();
}

void Core::Tick(Instant now, Actions& out) {
  machine_->Begin(now, out);
  machine_->Tick();
  machine_->End();
}

void Core::JournalDurable(std::uint64_t sequence, Instant now, Actions& out) {
  machine_->Begin(now, out);
  machine_->Durable(sequence);
  machine_->End();
}

std::string Core::EncodeSnapshot() const { return machine_->table.Encode(); }
Digest Core::DurableStateHash() const { return Sha256Of(machine_->table.Encode()); }
std::uint64_t Core::last_sequence() const { return machine_->last_sequence; }
std::uint32_t Core::incarnation() const { return machine_->table.incarnation(); }
Status Core::CheckInvariants() const { return machine_->Check(); }

CoreGauges Core::gauges() const {
  CoreGauges gauges = machine_->counters;
  gauges.jobs = machine_->table.jobs().size();
  gauges.tasks_ready = machine_->ready.size() + machine_->solo_ready.size();
  gauges.leases = machine_->leases.size();
  gauges.workers = machine_->workers.size();
  gauges.streams = machine_->streams.size();
  gauges.undurable_records = machine_->last_sequence - machine_->durable;
  return gauges;
}

void Core::Machine::Begin(Instant at, Actions& actions) {
  now = std::max(now, at.steady_ms);
  wall = at.wall_seconds;
  out = &actions;
}

void Core::Machine::End() {
  for (StreamEnd& end : ending) {
    const Job* job = table.Find(end.job);
    if (job != nullptr && !IsEnded(job->state))
      EndStream(end.job, end.state, std::move(end.outcome));
  }
  ending.clear();
  if (start_sequence != 0 && durable >= start_sequence) {
    if (shards_changed) DispatchShards();
    if (pushed_ready || !dirty_workers.empty()) DispatchTasks();
  }
  for (auto& [id, revoked] : revokes) {
    if (workers[id].peer != 0) Send(workers[id].peer, 0, protocol::LeasesRevoked{revoked});
  }
  for (auto& [id, granted] : grants) {
    if (!granted.tasks.empty() || !granted.shards.empty()) {
      Send(workers[id].peer, 0, std::move(granted));
    }
  }
  revokes.clear();
  grants.clear();
  grant_bytes.clear();
  out = nullptr;
}

void Core::Machine::Start(Instant, Actions&) {
  for (const auto& [place, known] : table.known_workers()) {
    Unaccounted& entry = unaccounted[place];
    entry.host_identity = known.host_identity;
    entry.worker_incarnation = known.worker_incarnation;
    entry.agent_incarnation = known.agent_incarnation;
  }
  had_workers = !unaccounted.empty();
  recovery_until = now + 2 * options.lease_ms;
  recovery_kill_at = now + options.lease_ms;
  Emit(StartRecord{table.incarnation() + 1});
  start_sequence = last_sequence;
  std::vector<JobId> streams_to_open;
  for (auto& [id, job] : table.mutable_jobs()) {
    if (IsEnded(job.state)) continue;
    if (job.IsStream()) streams_to_open.push_back(id);
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
      const Task& task = job.tasks[i];
      if (!IsEnded(task.state) && job.MayRun(task)) held_back.push_back({id, i});
    }
  }
  for (const JobId id : streams_to_open) OpenStream(id).IgnoreError();
}

void Core::Machine::Receive(const Request& request, protocol::Body&& body) {
  if (const Status allowed = CheckRole(request.identity->role, body); !allowed.ok()) {
    return Refuse(request, allowed);
  }
  std::visit([&](auto&& message) { On(request, std::move(message)); }, std::move(body));
}

void Core::Machine::Durable(std::uint64_t sequence) {
  durable = std::max(durable, std::min(sequence, last_sequence));
  while (!gated_sends.empty() && gated_sends.front().first <= durable) {
    out->sends.push_back(std::move(gated_sends.front().second));
    gated_sends.pop_front();
  }
  while (!gated_workers.empty() && gated_workers.front().first <= durable) {
    Reindex(workers[gated_workers.front().second]);
    gated_workers.pop_front();
    pushed_ready = shards_changed = true;
  }
  while (!gated_tasks.empty() && gated_tasks.front().first <= durable) {
    const TaskId id = gated_tasks.front().second;
    gated_tasks.pop_front();
    Enqueue(id);
  }
}

void Core::Machine::Tick() {
  TickRecovery();
  TickWorkers();
  TickStreams();
  while (!delayed.empty() && delayed.begin()->first <= now) {
    const TaskId id = delayed.begin()->second;
    delayed.erase(delayed.begin());
    Enqueue(id);
  }
  pushed_ready = pushed_ready || !ready.empty() || !solo_ready.empty();
  shards_changed = true;
}

void Core::Machine::Emit(RecordBody&& body) {
  Record record{wall, std::move(body)};
  out->records.push_back({++last_sequence, EncodeRecord(record)});
  Effects effects;
  const Status applied = table.Apply(std::move(record), effects);
  PB_CHECK(applied.ok());
  ActOn(effects);
}

void Core::Machine::ActOn(Effects& effects) {
  for (const TaskId& id : effects.stopped) {
    const Task& task = *table.Find(id);
    if (task.lease == LeaseNumber{}) continue;
    const auto it = leases.find(task.lease);
    if (it == leases.end()) continue;
    Worker& worker = workers[it->second.worker];
    Revoke(it->second);
    DropTaskLease(it->first);
    Reassign(worker);
  }
  for (const TaskId& id : effects.runnable) gated_tasks.emplace_back(last_sequence, id);
  for (const JobId id : effects.ended) {
    const Job* job = table.Find(id);
    if (job == nullptr) continue;
    CloseStream(*job);
    LogLine(id, StrCat("job ended: ", job->tasks_done, " tasks done, ", job->tasks_failed,
                       " failed, ", job->tasks_cancelled, " cancelled"));
  }
  for (const JobId id : effects.forgotten) logs.erase(id);
}

void Core::Machine::Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body) {
  if (peer != 0) out->sends.push_back({peer, request_id, std::move(body)});
}

void Core::Machine::Answer(const Request& request, protocol::Body&& body) {
  SendDurable(request.peer, request.request_id, std::move(body));
}

void Core::Machine::SendDurable(PeerId peer, std::uint64_t request_id, protocol::Body&& body) {
  if (peer == 0 || durable >= last_sequence) return Send(peer, request_id, std::move(body));
  gated_sends.emplace_back(last_sequence, SendAction{peer, request_id, std::move(body)});
}

void Core::Machine::Refuse(const Request& request, const Status& status) {
  Answer(request, protocol::RequestFailed{
                      {static_cast<std::int32_t>(status.code()), std::string(MessageOf(status))}});
}

void Core::Machine::LogLine(JobId job, std::string text) {
  JobLog& log = logs[job];
  if (text.size() > kMaxLogLineBytes) text.resize(kMaxLogLineBytes);
  log.lines.push_back({log.next_sequence++, wall, std::move(text)});
  if (log.lines.size() > kMaxLogLines) log.lines.pop_front();
}

void Core::Machine::PeerGone(PeerId id) {
  const auto it = peers.find(id);
  if (it == peers.end()) return;
  const Peer& peer = it->second;
  if (peer.worker != kNoWorker && workers[peer.worker].peer == id) {
    workers[peer.worker].peer = 0;
    Reindex(workers[peer.worker]);
  }
  if (!peer.agent_of.empty() && nodes[peer.agent_of].agent == id) {
    Node& node = nodes[peer.agent_of];
    node.agent = 0;
    for (const auto& [index, worker] : node.workers) Reindex(workers[worker]);
  }
  Trainer* trainer = FindTrainer(peer.trainer);
  if (trainer != nullptr && trainer->peer == id) {
    trainer->peer = 0;
    if (trainer->state == TrainerState::kAttached) trainer->state = TrainerState::kSuspended;
  }
  peers.erase(it);
}

}  // namespace patchbay::scheduler
