#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {

using scheduler::Actions;
using scheduler::Core;
using scheduler::JournalRecord;

std::uint64_t Dice::Below(std::uint64_t n) {
  const PhiloxBlock block = Philox4x32(
      {{static_cast<std::uint32_t>(count_), static_cast<std::uint32_t>(count_ >> 32), 7, 0}},
      static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32));
  ++count_;
  return UniformBelow((static_cast<std::uint64_t>(block.word[0]) << 32) | block.word[1], n);
}

World::World(const RunOptions& options)
    : options_(options),
      dice_(options.seed),
      audit_([this](const std::string& what) { Violation(what); }),
      costs_([this](const std::string& what) { Violation(what); }) {
  result_.seed = options.seed;
}

void World::DrawFaults() {
  if (options_.calm) return;
  const auto some = [&](double p, TimeMs least, TimeMs most) {
    return dice_.Chance(p) ? dice_.Between(least, most) : 0;
  };
  if (dice_.Chance(0.6)) faults_.loss = static_cast<double>(dice_.Below(200)) / 1000.0;
  if (dice_.Chance(0.5)) faults_.duplicate = static_cast<double>(dice_.Below(400)) / 1000.0;
  faults_.delay_max_ms = dice_.Chance(0.5) ? 2 : dice_.Between(5, 400);
  faults_.worker_crash_ms = some(0.5, 300, 8000);
  faults_.agent_crash_ms = some(0.25, 4000, 20000);
  faults_.scheduler_crash_ms = some(0.4, 3000, 20000);
  faults_.trainer_crash_ms = some(0.3, 3000, 15000);
  faults_.freeze_ms = some(0.4, 1000, 8000);
  faults_.partition_ms = some(0.4, 3000, 12000);
  faults_.reconnect_ms = some(0.4, 500, 5000);
  if (dice_.Chance(0.4)) faults_.delivery_failure = static_cast<double>(dice_.Below(300)) / 1000.0;
  faults_.disk_ms = dice_.Chance(0.5) ? 1 : dice_.Between(2, 300);
  if (options_.maps && dice_.Chance(0.6)) faults_.trainer_crash_ms = dice_.Between(500, 6000);
  if (options_.maps) faults_.streams = 0.8;
  if (options_.lean) LeanFaults();
  if (options_.ghosts) GhostFaults();
}

/// One of the combinations that often find bugs which 100,000 seeds of the others found once or
/// twice.
void World::LeanFaults() {
  const std::uint64_t which = dice_.Below(5);
  if (which == 1 || which == 2) faults_ = {};  // nothing else must hold them up
  faults_.scheduler_crash_ms = dice_.Between(2000, 8000);
  faults_.streams = 0.9;
  if (which == 0) {  // cancelled and tried again, while the journal lags and after restarts
    faults_.disk_ms = dice_.Between(100, 600);
    faults_.cancelled = faults_.tried_again = 0.8;
    faults_.streams = 0.1;
  } else if (which == 1) {  // a batch is completed while its fence waits, and moved then
    faults_.nodes_least = 2;
    faults_.batches = 400;
    faults_.delay_max_ms = dice_.Between(2, 30);
    faults_.freeze_ms = dice_.Between(6000, 12'000);
    faults_.frozen_ms = 10'000;  // a lease time: condemned, it is back before the trainer moves on
    faults_.freezes_busy = true;
    faults_.agent_freezes_too = 1;
    faults_.scheduler_crash_ms = 20'000;
    faults_.crash_while_fencing = 0.8;
    faults_.fence_crash_ms = faults_.away_ms = 300;
  } else if (which == 2) {  // a worker does not hear that its task was cancelled, and is retried
    faults_.reconnect_ms = dice_.Between(50, 400);
    faults_.command_ms = 100;
    faults_.cancelled = faults_.tried_again = 0.9;
    faults_.scheduler_crash_ms = 0;
    faults_.heavy = 0.8;
    faults_.streams = 0.1;
  } else if (which == 3) {  // messages of ended workers arrive under the next scheduler
    faults_.sweep_ms = dice_.Between(2000, 8000);
    faults_.disk_ms = 1;
  } else {  // grants of the scheduler arrive when the next one has the worker
    faults_.scheduler_crash_ms = dice_.Between(1000, 4000);
    faults_.away_ms = 100;
    faults_.delay_max_ms = dice_.Between(200, 1000);
  }
}

void World::BuildCluster() {
  const auto count = [&](std::uint64_t small, std::uint64_t large) {
    return 1 + dice_.Below(options_.large ? large : small);
  };
  const std::uint64_t nodes =
      options_.large ? 16 + dice_.Below(16) : std::max(faults_.nodes_least, count(4, 4));
  for (std::uint64_t n = 0; n < nodes; ++n) {
    auto agent = std::make_unique<SimAgent>();
    agent->name = StrCat("node", n);
    agent->actor.identity = {scheduler::Role::kWorker, agent->name, {}, {}};
    agent->actor.node = static_cast<int>(n);
    agent->actor.host = static_cast<int>(faults_.hosts == 0 ? n : n % faults_.hosts);
    const std::uint64_t workers = options_.large ? 8 : count(4, 8);
    for (std::uint64_t w = 0; w < workers; ++w) {
      auto worker = std::make_unique<SimWorker>();
      worker->index = static_cast<std::uint32_t>(w);
      DrawCapacity(*worker, n == 0 && w == 0);
      worker->actor.identity = agent->actor.identity;
      worker->actor.node = static_cast<int>(n);
      worker->actor.host = agent->actor.host;
      agent->workers.push_back(std::move(worker));
    }
    DrawNode(*agent);
    agents_.push_back(std::move(agent));
  }
  client_.identity = {scheduler::Role::kOperator, "ops", {"/"}, {"/"}};
  client_.receive = [this](Body&& body, std::uint64_t request) {
    ClientReceive(std::move(body), request);
  };
  Join(client_);
  const std::uint64_t jobs = count(4, 8);
  for (std::uint64_t j = 0; j < jobs; ++j) DrawJob(j);
  if (options_.teams) JoinUsers();
}

/// The first worker has room for every task, so that no job waits for a machine that is not there.
void World::DrawCapacity(SimWorker& worker, bool largest) {
  static constexpr std::uint32_t kCpu[] = {1000, 1000, 2000, 4000};
  worker.capacity = {kCpu[dice_.Below(4)], dice_.Chance(0.3) ? 1u : 0u,
                     (1ull << 28) << dice_.Below(3)};
  if (largest) worker.capacity = {4000, 1, 1ull << 30};
  const bool cuda = !options_.ghosts && !largest && worker.capacity.gpus != 0 && dice_.Chance(0.5);
  if (cuda) worker.numerics = Numerics::kCuda;
  any_cuda_ = any_cuda_ || cuda;
}

/// Between the need of its largest worker and that of all workers together.
void World::DrawNode(SimAgent& agent) {
  protocol::Resources most{1000, 0, 0}, sum{0, 0, 0};
  for (const auto& worker : agent.workers) {
    const protocol::Resources& one = worker->capacity;
    most = scheduler::Largest(most, one);
    sum = {sum.cpu_millis + one.cpu_millis, sum.gpus + one.gpus,
           sum.memory_bytes + one.memory_bytes};
  }
  sum = scheduler::Largest(most, sum);
  agent.capacity.cpu_millis =
      static_cast<std::uint32_t>(dice_.Between(most.cpu_millis / 1000, sum.cpu_millis / 1000)) *
      1000;
  agent.capacity.gpus = static_cast<std::uint32_t>(dice_.Between(most.gpus, sum.gpus));
  agent.capacity.memory_bytes =
      most.memory_bytes + dice_.Below(sum.memory_bytes - most.memory_bytes + 1);
}

void World::DrawJob(std::uint64_t number) {
  SimJob job;
  job.key = StrCat("job", number);
  job.number = number;
  job.priority = options_.ghosts ? 0 : static_cast<std::int32_t>(dice_.Below(3));
  if (dice_.Chance(faults_.cancelled)) job.cancel_at = dice_.Between(1, 30 * faults_.command_ms);
  if (dice_.Chance(faults_.streams)) {
    job.kind = "stream";
    job.world_size = static_cast<std::uint32_t>(1 + dice_.Below(4));
    job.has_units = options_.maps;
    if (job.has_units) job.world_size = 1;
    job.wanted_batches = 5 + dice_.Below(faults_.batches);
    DrawPlanning(job);
    job.numerics = any_cuda_ && dice_.Chance(0.3) ? "cuda" : dice_.Chance(0.3) ? "strict" : "cpu";
    if (!options_.ghosts && dice_.Chance(0.06)) {
      job.bad_shard = true;
      if (!job.has_units) job.expected = protocol::JobState::kFailed;
    }
  } else {
    static const char* const kKinds[] = {"noop", "noop",   "work", "work",  "flaky",
                                         "bad",  "poison", "hang", "cured", "slide"};
    const bool heavy = faults_.heavy != 0 && dice_.Chance(faults_.heavy);
    const std::string kind = heavy ? "work" : kKinds[dice_.Below(10)];
    job.kind = "batch";
    const std::uint64_t most = kind == "noop" ? 400 : 40;
    const bool mixed = heavy || dice_.Chance(0.5);
    job.payload = StrCat("fan ", 2 + dice_.Below(options_.large ? most * 4 : most), " ", kind, " ",
                         mixed ? 1 + dice_.Below(100) : 0);
    if (kind == "bad" || kind == "poison" || kind == "hang") {
      job.expected = protocol::JobState::kPartlyFailed;
      job.retry = dice_.Chance(0.2);
    }
    job.retry = job.retry || kind == "cured" || kind == "slide";
    if (faults_.tried_again != 0) job.retry = job.retry || dice_.Chance(faults_.tried_again);
  }
  jobs_.push_back(std::move(job));
}

/// One task, or many images and their join; one image may be bad.
void World::DrawPlanning(SimJob& job) {
  job.payload = "plan";
  if (!dice_.Chance(0.7)) return;
  static const char* const kKinds[] = {"noop",  "noop", "noop", "noop",  "noop",
                                       "flaky", "bad",  "hang", "poison"};
  const std::string kind = kKinds[dice_.Below(9)];
  job.payload = StrCat("plan ", 1 + dice_.Below(12), " ", kind);
  if (kind != "noop" && kind != "flaky") job.expected = protocol::JobState::kFailed;
}

void World::At(TimeMs when, std::function<void()> what) {
  queue_.push({std::max(when, now_), next_order_++, std::move(what)});
}

void World::AtActor(Actor& actor, TimeMs when, std::function<void()> what) {
  const std::uint32_t life = actor.life;
  At(when, [this, &actor, life, what = std::move(what)]() mutable {
    if (!actor.alive || actor.life != life) return;
    if (now_ < actor.frozen_until) return AtActor(actor, actor.frozen_until, std::move(what));
    what();
  });
}

void World::Note(const std::string& what) {
  const std::string line = StrCat(now_, " ", what);
  for (const char c : line) {
    result_.trace_hash = (result_.trace_hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  if (options_.trace) std::fprintf(stderr, "%s\n", line.c_str());
}

void World::Violation(const std::string& what) {
  if (result_.violation.empty()) result_.violation = StrCat("at ", now_, " ms: ", what);
  Note(StrCat("VIOLATION ", what));
}

// ---------------------------------------------------------------- network

void World::Join(Actor& actor) {
  actor.id = next_actor_++;
  actors_[actor.id] = &actor;
}

/// A worker that returns on another connection may have been declared lost in between; its tasks
/// then belong to other workers.
void World::NoteRegistration(int actor, scheduler::PeerId peer, std::uint64_t worker_incarnation) {
  const TimeMs lost_ms = scheduler::CoreOptions().lost_ms;
  const auto heard = heard_.find(actor);
  const bool back = heard != heard_.end() && registered_.count(peer) == 0;
  if (back && now_ - heard->second >= lost_ms) audit_.LostTasksOf(worker_incarnation);
  registered_[peer] = worker_incarnation;
}

/// The connection breaks: messages under way on it are lost. The scheduler may or may not notice.
void World::Reconnect(Actor& actor) {
  ++actor.connection;
  const auto peer = peer_of_.find(actor.id);
  if (peer == peer_of_.end() || core_ == nullptr || !dice_.Chance(0.5)) return;
  Actions actions;
  const scheduler::PeerId id = peer->second.first;
  peers_.erase(id);
  peer_of_.erase(peer);
  core_->PeerGone(id, Now(), actions);
  Perform(std::move(actions));
}

void World::ToScheduler(Actor& actor, Body&& body, std::uint64_t request) {
  int copies = 1;
  if (!healed_ && dice_.Chance(faults_.loss)) {
    Hit("message lost");
    copies = 0;
  } else if (!healed_ && dice_.Chance(faults_.duplicate)) {
    Hit("message duplicated");
    copies = 2;
  }
  for (int i = 0; i < copies; ++i) {
    const std::uint32_t connection = actor.connection;
    At(now_ + Delay(), [this, &actor, connection, request, body]() mutable {
      if (core_ == nullptr || Cut(actor) || actor.connection != connection) return;
      auto peer = peer_of_.find(actor.id);
      if (peer == peer_of_.end() || peer->second.second != connection) {
        const scheduler::PeerId id = next_peer_++;
        core_->PeerJoined(id, actor.identity);
        peer = peer_of_.insert_or_assign(actor.id, std::pair(id, connection)).first;
        peers_[id] = {actor.id, connection};
      }
      if (const auto* hello = std::get_if<protocol::RegisterWorker>(&body)) {
        NoteRegistration(actor.id, peer->second.first, hello->worker_incarnation);
      }
      if (registered_.count(peer->second.first) != 0) heard_[actor.id] = now_;
      const auto* attach = std::get_if<protocol::AttachTrainer>(&body);
      std::optional<std::pair<std::pair<JobId, std::uint32_t>, std::uint64_t>> attached;
      if (attach != nullptr)
        attached = {{attach->stream, attach->rank}, attach->trainer_incarnation};
      Note(StrCat("recv ", actor.id, " ", TextOf(body)));
      Actions actions;
      protocol::Envelope envelope;
      envelope.sender_incarnation = static_cast<std::uint64_t>(actor.id) * 1000 + actor.life;
      envelope.request_id = request;
      envelope.body = std::move(body);
      const scheduler::PeerId id = peer->second.first;
      costs_.Received(envelope.body);
      core_->Receive(id, std::move(envelope), Now(), actions);
      if (attached.has_value()) {
        const bool refused = std::any_of(
            actions.sends.begin(), actions.sends.end(), [&](const scheduler::SendAction& send) {
              return send.peer == id && std::holds_alternative<protocol::RequestFailed>(send.body);
            });
        if (!refused) attached_[attached->first] = attached->second;
      }
      Perform(std::move(actions));
    });
  }
}

void World::ToActor(int actor, std::uint32_t connection, std::uint64_t request, Body&& body) {
  int copies = 1;
  if (!healed_ && dice_.Chance(faults_.loss)) {
    Hit("answer lost");
    copies = 0;
  } else if (!healed_ && dice_.Chance(faults_.duplicate)) {
    Hit("answer duplicated");
    copies = 2;
  }
  for (int i = 0; i < copies; ++i) {
    Actor& to = *actors_.at(actor);
    AtActor(to, now_ + Delay(), [this, &to, connection, request, body]() mutable {
      if (Cut(to) || to.connection != connection) return;
      Note(StrCat("deliver ", to.id, " ", TextOf(body)));
      to.receive(std::move(body), request);
    });
  }
}

// ---------------------------------------------------------------- the scheduler's process and disk

void World::StartScheduler() {
  scheduler::CoreOptions core_options;
  core_ = std::make_unique<Core>(core_options);
  ++scheduler_life_;
  scheduler_started_ = now_;
  audit_.SchedulerStarted();
  if (snapshot_sequence_ != 0) {
    Hit("restart from snapshot");
    if (!core_->LoadSnapshot(snapshot_sequence_, snapshot_).ok()) Violation("snapshot unreadable");
  }
  for (const JournalRecord& record : disk_) {
    if (record.sequence <= snapshot_sequence_) continue;
    const Status replayed = core_->Replay(record.sequence, record.bytes);
    if (!replayed.ok()) return Violation(StrCat("I13 replay: ", MessageOf(replayed)));
  }
  if (shadow_ != nullptr && core_->DurableStateHash() != shadow_->DurableStateHash()) {
    Violation("I13: replayed state differs from the live one");
  }
  if (shadow_ == nullptr) shadow_ = std::make_unique<Core>(core_options);
  Actions actions;
  core_->Start(Now(), actions);
  Perform(std::move(actions));
  TickLoop();
}

void World::TickLoop() {
  At(now_ + 100, [this, life = scheduler_life_] {
    if (core_ == nullptr || scheduler_life_ != life) return;
    Actions ticked;
    core_->Tick(Now(), ticked);
    Perform(std::move(ticked));
    WatchLinks();
    TickLoop();
  });
}

void World::CrashScheduler() {
  if (core_ == nullptr) return;
  Hit("scheduler crash");
  if (!cache_.empty()) Hit("journal tail lost");
  Note("scheduler crash");
  core_.reset();
  cache_.clear();
  flushing_ = false;
  peers_.clear();
  peer_of_.clear();
  attached_.clear();
  told_.clear();
  if (dice_.Chance(0.3) && !disk_.empty()) {
    snapshot_sequence_ = disk_.back().sequence;
    snapshot_ = shadow_->EncodeSnapshot();
  }
  At(now_ + dice_.Between(10, faults_.away_ms), [this] {
    if (core_ == nullptr) StartScheduler();
  });
}

void World::Perform(Actions&& actions) {
  const bool crash = options_.crash_at_record != 0 && !crashed_at_record_ &&
                     !actions.records.empty() &&
                     actions.records.back().sequence >= options_.crash_at_record;
  crashed_at_record_ = crashed_at_record_ || crash;
  for (JournalRecord& record : actions.records) {
    if (const auto decoded = scheduler::DecodeRecord(record.bytes); decoded.ok()) {
      audit_.Emitted(*decoded);
    }
    cache_.push_back(std::move(record));
  }
  for (const JournalRecord& record : cache_)
    result_.records = std::max(result_.records, record.sequence);
  if (!cache_.empty()) Flush();
  for (scheduler::SendAction& send : actions.sends) {
    const auto peer = peers_.find(send.peer);
    if (peer == peers_.end()) continue;
    sending_to_ = send.peer;
    CheckSend(*actors_.at(peer->second.first), send.request_id, send.body);
    ToActor(peer->second.first, peer->second.second, send.request_id, std::move(send.body));
  }
  audit_.EndOfEvent();
  if (crash) return CrashScheduler();
  if (result_.events % 16 == 0) CheckCore();
}

/// Group commit: all records in the cache when the disk is free are written together.
void World::Flush() {
  if (flushing_) return;
  flushing_ = true;
  const std::uint32_t life = scheduler_life_;
  const std::size_t count = cache_.size();
  At(now_ + dice_.Between(1, faults_.disk_ms), [this, life, count] {
    if (core_ == nullptr || scheduler_life_ != life) return;
    flushing_ = false;
    for (std::size_t i = 0; i < count; ++i) {
      CheckRecord(cache_[i]);
      const Status applied = shadow_->Replay(cache_[i].sequence, cache_[i].bytes);
      if (!applied.ok()) Violation(StrCat("I13 record: ", MessageOf(applied)));
      disk_.push_back(std::move(cache_[i]));
    }
    cache_.erase(cache_.begin(), cache_.begin() + static_cast<std::ptrdiff_t>(count));
    if (cache_.empty() && shadow_->DurableStateHash() != core_->DurableStateHash()) {
      Violation("I13: live state differs from its journal");
    }
    Actions actions;
    core_->JournalDurable(disk_.back().sequence, Now(), actions);
    Perform(std::move(actions));
  });
}

// ---------------------------------------------------------------- faults

void World::EveryMean(TimeMs mean, std::function<void()> what) {
  if (mean == 0) return;
  At(now_ + dice_.Between(1, 2 * mean), [this, mean, what = std::move(what)] {
    if (healed_) return;
    what();
    EveryMean(mean, what);
  });
}

void World::FreezeWorker() {
  const auto any = [this](const auto& all) { return all[dice_.Below(all.size())].get(); };
  Hit("worker frozen");
  SimAgent* node = any(agents_);
  const TimeMs lasts = faults_.frozen_ms != 0
                           ? dice_.Between(faults_.frozen_ms, faults_.frozen_ms + 1000)
                           : dice_.Between(100, dice_.Chance(0.5) ? 2000 : 40000);
  SimWorker* worker = any(node->workers);
  for (int tries = 0; faults_.freezes_busy && worker->shards.empty() && tries < 50; ++tries) {
    node = any(agents_);
    worker = any(node->workers);
  }
  worker->actor.frozen_until = now_ + lasts;
  if (dice_.Chance(faults_.agent_freezes_too)) {  // it cannot kill it before it writes again
    Hit("agent frozen longer than its worker");
    node->actor.frozen_until = now_ + lasts + dice_.Between(1, 3000);
  }
}

/// All at once, and the scheduler before it knows others.
void World::SweepWorkers() {
  Hit("all workers end, then the scheduler");
  for (auto& agent : agents_) {
    for (auto& worker : agent->workers) KillWorkerProcess(*agent, *worker, true);
  }
  At(now_ + dice_.Between(10, 300), [this] { CrashScheduler(); });
}

/// The transport notices an ended process at once, and a silent one after a while: the connection
/// is gone for both sides.
void World::WatchLinks() {
  constexpr TimeMs kPatience = 1500;
  std::vector<scheduler::PeerId> lost;
  for (const auto& [peer, of] : peers_) {
    const Actor& actor = *actors_.at(of.first);
    const bool mute = actor.mute_since != 0 && now_ - actor.mute_since >= kPatience;
    if (!actor.alive || mute || actor.connection != of.second) lost.push_back(peer);
  }
  for (const scheduler::PeerId peer : lost) {
    const auto [id, connection] = peers_.at(peer);
    Actor& actor = *actors_.at(id);
    if (actor.connection == connection) ++actor.connection;
    peers_.erase(peer);
    const auto latest = peer_of_.find(id);
    if (latest != peer_of_.end() && latest->second.first == peer) peer_of_.erase(latest);
    Actions actions;
    core_->PeerGone(peer, Now(), actions);
    Perform(std::move(actions));
    if (core_ == nullptr) return;
  }
}

void World::PlanFaults() {
  if (faults_.vanish_ms != 0) EveryMean(faults_.vanish_ms, [this] { Vanish(); });
  const auto agent = [this]() -> SimAgent& { return *agents_[dice_.Below(agents_.size())]; };
  const auto worker = [this](SimAgent& of) -> SimWorker& {
    return *of.workers[dice_.Below(of.workers.size())];
  };
  EveryMean(faults_.worker_crash_ms, [=, this] {
    SimAgent& of = agent();
    Hit("worker crash");
    KillWorkerProcess(of, worker(of), true);
  });
  EveryMean(faults_.agent_crash_ms, [=, this] {
    Hit("agent crash");
    CrashAgent(agent());
  });
  EveryMean(faults_.scheduler_crash_ms, [this] { CrashScheduler(); });
  EveryMean(faults_.sweep_ms, [this] { SweepWorkers(); });
  EveryMean(faults_.trainer_crash_ms, [this] {
    if (trainers_.empty()) return;
    SimTrainer& trainer = trainers_[dice_.Below(trainers_.size())];
    if (trainer.detached || !trainer.failure.empty()) return;
    if (trainer.is_consumer) return EndConsumer(trainer);
    Hit("trainer crash");
    NewTrainerProcess(trainer);
  });
  EveryMean(faults_.freeze_ms, [this] { FreezeWorker(); });
  EveryMean(faults_.freeze_ms * 3, [this] {
    if (trainers_.empty()) return;
    Hit("trainer frozen");
    trainers_[dice_.Below(trainers_.size())].actor.frozen_until = now_ + dice_.Between(100, 6000);
  });
  EveryMean(faults_.partition_ms, [this] {
    const int node = static_cast<int>(dice_.Below(agents_.size()));
    Hit("partition");
    if (options_.ghosts) return CutHost(agents_[static_cast<std::size_t>(node)]->actor.host);
    cut_.insert(node);
    At(now_ + dice_.Between(200, dice_.Chance(0.5) ? 2500 : 25000),
       [this, node] { cut_.erase(node); });
  });
  EveryMean(faults_.reconnect_ms, [this] {
    auto it = actors_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(dice_.Below(actors_.size())));
    Hit("connection broken");
    Reconnect(*it->second);
  });
}

void World::Progressed() {
  if (healed_) end_at_ = std::max(end_at_, now_ + kPatienceMs);
}

void World::Heal() {
  healed_ = true;
  Note("healed");
  cut_.clear();
  if (core_ == nullptr) StartScheduler();
  for (auto& [id, actor] : actors_) actor->frozen_until = std::min(actor->frozen_until, now_);
}

// ---------------------------------------------------------------- the run

bool World::Finished() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [](const SimJob& job) {
    return !job.retry && job.state != protocol::JobState::kQueued &&
           job.state != protocol::JobState::kRunning;
  });
}

RunResult World::Run() {
  DrawFaults();
  BuildCluster();
  heal_at_ = 30'000 + dice_.Between(0, 20'000);
  end_at_ = heal_at_ + kPatienceMs;
  StartScheduler();
  for (auto& agent : agents_) {
    Join(agent->actor);
    for (auto& worker : agent->workers) {
      Join(worker->actor);
      worker_of_[worker->actor.id] = worker.get();
    }
    StartAgent(*agent);
  }
  for (SimJob& job : jobs_) {
    At(dice_.Between(0, 5000), [this, &job] { SubmitLoop(job); });
  }
  PlanFaults();
  WatchWaits();
  At(heal_at_, [this] { Heal(); });
  while (!queue_.empty() && result_.violation.empty()) {
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.at;
    ++result_.events;
    if (now_ > end_at_ || (now_ > 5000 && healed_ && Finished())) break;
    event.what();
  }
  if (result_.violation.empty()) CheckEnd();
  return result_;
}

}  // namespace patchbay::sim
