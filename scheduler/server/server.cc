#include "scheduler/server/server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/container/flat_hash_map.h"
#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/core/status.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/authorized_keys.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/server_socket.h"
#include "runtime/wire/protocol/codec.h"
#include "scheduler/dashboard/dashboard.h"
#include "scheduler/journal/journal.h"
#include "scheduler/metrics/metrics_listener.h"
#include "scheduler/server/reply_cache.h"

namespace patchbay::scheduler {
namespace {

/// Makes a missing folder (0700). The descriptor holds the lock until it closes. FailedPrecondition
/// when another scheduler holds it or the folder is on a network file system.
StatusOr<UniqueFd> TakeStateFolder(const std::string& folder) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisProcess(), folder, 0700));
  PB_RETURN_IF_ERROR(control::CheckLocalFolder(folder));
  PB_RETURN_IF_ERROR(control::CheckPrivateFolder(folder));
  const std::string path = StrCat(folder, "/lock");
  PB_ASSIGN_OR_RETURN(UniqueFd lock,
                      OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return FailedPrecondition("take state folder: ", folder, ": another scheduler uses it");
    }
    return FromErrno("lock", path, errno);
  }
  return lock;
}

constexpr TimeMs kTickMs = 100, kMetricsMs = 1'000, kSharesMs = 60'000;
/// Records on their way to the disk at which peers have to wait.
constexpr std::uint64_t kUndurableRecordsMax = 50'000;
/// And of their bytes.
constexpr std::uint64_t kWaitingBytesMax = 64u << 20;
/// Open jobs may hold one part in kMemoryShare of the available memory, and bytes that peers do not
/// read another: a snapshot is a copy, and ended jobs and the node's other processes need theirs.
constexpr std::uint64_t kMemoryShare = 8;
constexpr TimeMs kStopDelayMs = 50;           ///< for the last answers to leave
constexpr std::chrono::seconds kLookWait{1};  ///< a browser waits for the core
/// Jobs on the dashboard: all that may be open or kept.
constexpr std::size_t kJobsOnDashboard = kMaxOpenJobs + kMaxFinishedJobs;
/// Time for the agents of this machine to take the same signal.
constexpr TimeMs kSignalSpreadMs = 200;
/// Trainers that leave have done so by then; others wait for the next start.
constexpr TimeMs kTrainersLeaveMs = 1'000;
constexpr std::uint64_t kLoggedDropsMax = 10;

Role ToCoreRole(control::Role role) {
  switch (role) {
    case control::Role::kOperator:
      return Role::kOperator;
    case control::Role::kSubmitter:
      return Role::kSubmitter;
    case control::Role::kWorker:
      return Role::kWorker;
    case control::Role::kTrainer:
      return Role::kTrainer;
  }
  PB_CHECK(false);
}

CoreOptions WithinMemory(CoreOptions options) {
  options.open_bytes_max = std::min(options.open_bytes_max, MemoryLimit().bytes / kMemoryShare);
  return options;
}

class CoreServer final : public Server {
 public:
  CoreServer(control::EventLoop& loop, ServerOptions options)
      : loop_(loop), options_(std::move(options)), core_(WithinMemory(options_.core)) {}
  ~CoreServer() override;

  Status Open();

  const std::string& address() const override { return socket_->address(); }
  void AnnounceStop() override;
  void Stop() override;
  Status outcome() const override { return outcome_; }

 private:
  /// A command whose answer is to be kept when it leaves.
  struct Awaited {
    PeerId peer = 0;
    std::uint64_t request_id = 0;
    auto operator<=>(const Awaited&) const = default;
  };

  Instant Now() const { return {loop_.NowMs(), WallClockSeconds()}; }
  Status OpenJournal(const control::KeyPair& pair);
  Status OpenSocket(control::KeyPair pair);
  Status OpenPages();
  void OnMessage(const control::Peer& peer, std::span<const std::byte> bytes);
  void OnGone(PeerId peer);
  void OnDurable(const Status& status, std::uint64_t sequence);
  void OnTick();
  /// Shows today's figures on the page of metrics.
  void PublishMetrics();
  /// True when the command was answered before, or is being answered: nothing is left to do.
  bool AnswerAgain(const control::Peer& peer, const protocol::Envelope& message);
  /// Carries out the core's decisions in their order; empties `actions`.
  void CarryOut(Actions& actions);
  void Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body);
  void Refuse(PeerId peer, std::uint64_t request_id, const Status& why);
  void Drop(const control::Peer& peer, const Status& why);
  /// Tells the core what this process alone knows and `status` shows: peers that the socket turned
  /// away, and free space.
  void ReportHost();
  /// The cluster, for a thread of the dashboard; nothing when the loop does not get to it.
  std::optional<Seen> Look(const PeerIdentity& identity);
  /// The dashboard shows the shares of the last hour.
  void KeepShares();
  void AdmitBrowser(const HostRequest& request);
  void ServeHostRequest(const HostRequest& request);
  Status ReloadKeys();
  void CompactIfWanted();
  /// Tells every agent, and stops when the last has left or had its time.
  void DrainThenStop();
  void NotePeer(PeerId peer, const protocol::Body& body);
  protocol::ShuttingDown Stopping() const {
    return {static_cast<std::uint64_t>(options_.grace_ms)};
  }
  void ForgetTrainer(PeerId peer);
  void EndWhenLeft();
  void End();
  void Fail(Status why);

  control::EventLoop& loop_;
  ServerOptions options_;
  UniqueFd lock_;
  Core core_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<control::ServerSocket> socket_;
  std::unique_ptr<MetricsListener> metrics_;  ///< null: none was asked for
  std::unique_ptr<Dashboard> dashboard_;      ///< likewise
  TurnTimes turns_;
  std::vector<control::EventLoop::Id> timers_;
  protocol::Encoder encoder_;
  protocol::Decoder decoder_;
  Actions actions_;
  absl::flat_hash_map<PeerId, std::string> joined_;  ///< with their key names
  std::set<PeerId> agents_;          ///< peers that offered a node; told when the cluster stops
  std::set<PeerId> leaving_agents_;  ///< agents that said that they drain
  std::set<PeerId> trainers_;        ///< peers that attached; told, too
  std::set<PeerId> told_trainers_;   ///< trainers that were told, and have time to leave
  bool draining_ = false;
  bool signalled_ = false, may_end_ = false;  ///< Stop was called; the signal has spread
  ReplyCache replies_;
  std::map<Awaited, std::uint64_t> awaited_;  ///< with the sender's incarnation
  std::uint64_t incarnation_ = 0;             ///< incarnation of this process, as a sender
  std::uint64_t drops_ = 0;
  std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
  Status outcome_;
};

CoreServer::~CoreServer() {
  for (const auto id : timers_) loop_.Cancel(id);
  dashboard_.reset();
  socket_.reset();
  journal_.reset();  // writes what is queued, and its thread calls us no more
  *alive_ = false;
}

Status CoreServer::Open() {
  incarnation_ = RandomU64();
  PB_ASSIGN_OR_RETURN(lock_, TakeStateFolder(options_.state_folder));
  PB_ASSIGN_OR_RETURN(control::KeyPair pair, control::ReadServerKey(options_.server_key_file));
  PB_RETURN_IF_ERROR(OpenJournal(pair));
  PB_RETURN_IF_ERROR(OpenSocket(std::move(pair)));
  core_.Start(Now(), actions_);
  CarryOut(actions_);
  timers_.push_back(loop_.Every(kTickMs, [this] { OnTick(); }));
  return OpenPages();
}

Status CoreServer::OpenPages() {
  if (!options_.dashboard.empty()) {
    PB_ASSIGN_OR_RETURN(dashboard_,
                        Dashboard::Open(options_.dashboard, options_.tls,
                                        [this](const auto& user) { return Look(user); }));
    LogInfo(StrCat("the dashboard is at ", dashboard_->url()));
    KeepShares();
    timers_.push_back(loop_.Every(kSharesMs, [this] { KeepShares(); }));
  }
  if (options_.metrics.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(
      metrics_, MetricsListener::Open({options_.metrics, options_.tls, options_.metrics_token}));
  LogInfo(StrCat("metrics are at ", metrics_->url()));
  PublishMetrics();
  timers_.push_back(loop_.Every(kMetricsMs, [this] { PublishMetrics(); }));
  return absl::OkStatus();
}

void CoreServer::KeepShares() {
  PeerIdentity everyone;
  everyone.role = Role::kOperator;
  dashboard_->KeepShares(core_.DescribeTeams(everyone).rows);
}

std::optional<Seen> CoreServer::Look(const PeerIdentity& identity) {
  const auto answer = std::make_shared<std::promise<std::optional<Seen>>>();
  std::future<std::optional<Seen>> seen = answer->get_future();
  loop_.Post([this, alive = alive_, answer, identity] {
    if (!*alive) return answer->set_value(std::nullopt);
    ReportHost();
    const Turn turn(turns_);
    answer->set_value(
        Seen{core_.Describe(identity, kJobsOnDashboard), core_.DescribeTeams(identity)});
  });
  if (seen.wait_for(kLookWait) != std::future_status::ready) return std::nullopt;
  return seen.get();
}

Status CoreServer::OpenJournal(const control::KeyPair& pair) {
  JournalOptions options;
  options.path = StrCat(options_.state_folder, "/journal.db");
  options.secret = pair.secret_key;
  PB_ASSIGN_OR_RETURN(journal_, Journal::Open(options));
  PB_RETURN_IF_ERROR(journal_->ReplayInto(core_));
  const std::uint64_t lost = journal_->records_lost(), kept = core_.last_sequence();
  journal_->Start([this, alive = alive_](const Status& status, std::uint64_t sequence) {
    loop_.Post([this, alive, status, sequence] {
      if (*alive) OnDurable(status, sequence);
    });
  });
  if (lost == 0) return absl::OkStatus();
  LogError(
      StrCat("journal: ", options.path, ": the last ", lost, " of ", kept + lost,
             " records are lost, its write-ahead log was cut: jobs submitted in that time are "
             "unknown, others continue from the remaining records; run the same commands again"));
  journal_->Compact(kept, core_.EncodeSnapshot());
  return absl::OkStatus();
}

Status CoreServer::OpenSocket(control::KeyPair pair) {
  control::ServerSocket::Options options;
  options.address = options_.address;
  options.allow_public = options_.allow_public;
  options.unread_bytes_max = std::min(options.unread_bytes_max, MemoryLimit().bytes / kMemoryShare);
  options.pair = std::move(pair);
  PB_ASSIGN_OR_RETURN(auto keys, control::AuthorizedKeys::Load(options_.keys_folder));
  PB_ASSIGN_OR_RETURN(
      socket_,
      control::ServerSocket::Bind(
          loop_, options, std::move(keys),
          {.on_message = [this](const control::Peer& peer,
                                std::span<const std::byte> bytes) { OnMessage(peer, bytes); },
           .on_gone = [this](control::PeerId peer) { OnGone(peer); }}));
  return absl::OkStatus();
}

void CoreServer::OnMessage(const control::Peer& peer, std::span<const std::byte> bytes) {
  auto message = decoder_.Decode(bytes);
  if (!message.ok()) return Drop(peer, message.status());
  if (joined_.emplace(peer.id, peer.key_name).second) {
    core_.PeerJoined(peer.id, {ToCoreRole(peer.role), peer.key_name, peer.read_prefixes,
                               peer.write_prefixes, peer.team});
  }
  if (AnswerAgain(peer, *message)) return;
  NotePeer(peer.id, message->body);
  if (std::holds_alternative<protocol::DescribeCluster>(message->body)) ReportHost();
  const Turn turn(turns_);
  core_.Receive(peer.id, *std::move(message), Now(), actions_);
  CarryOut(actions_);
}

/// Peers that are told, or waited for, when this process stops.
void CoreServer::NotePeer(PeerId peer, const protocol::Body& body) {
  if (std::holds_alternative<protocol::RegisterAgent>(body)) agents_.insert(peer);
  if (std::holds_alternative<protocol::AttachTrainer>(body)) trainers_.insert(peer);
  const bool drains = std::holds_alternative<protocol::Drain>(body);
  if (drains && agents_.contains(peer)) leaving_agents_.insert(peer);
}

void CoreServer::ReportHost() {
  std::vector<protocol::PeersDropped::Item> items;
  for (DroppedPeer& peer : socket_->dropped_peers()) {
    items.push_back({std::move(peer.address), std::move(peer.reason), peer.times, peer.last_at});
  }
  core_.PeersDropped(std::move(items));
  core_.StateFree(FreeBytes(Folders::OfThisProcess(), options_.state_folder).value_or(0));
}

void CoreServer::Drop(const control::Peer& peer, const Status& why) {
  if (++drops_ <= kLoggedDropsMax) {
    LogWarning(StrCat("a message of key ", peer.key_name, " was dropped: ", MessageOf(why)));
  }
  // Garbage gets no answer; a peer of another version is told so.
  const std::uint64_t request_id = decoder_.refused_request_id();
  if (request_id != 0) Refuse(peer.id, request_id, why);
}

bool CoreServer::AnswerAgain(const control::Peer& peer, const protocol::Envelope& message) {
  if (message.request_id == 0 || !MustNotRepeat(message.body)) return false;
  const auto* answer =
      replies_.Find({peer.key_name, message.sender_incarnation, message.request_id});
  if (answer != nullptr) {
    socket_->Send(peer.id, AsBytes(*answer)).IgnoreError();
    return true;
  }
  const Awaited awaited{peer.id, message.request_id};
  return !awaited_.emplace(awaited, message.sender_incarnation).second;
}

void CoreServer::OnGone(PeerId peer) {
  if (joined_.erase(peer) == 0) return;
  awaited_.erase(awaited_.lower_bound({peer, 0}), awaited_.lower_bound({peer + 1, 0}));
  core_.PeerGone(peer, Now(), actions_);
  CarryOut(actions_);
  ForgetTrainer(peer);
  leaving_agents_.erase(peer);
  if (agents_.erase(peer) != 0 && draining_ && agents_.empty()) End();
  EndWhenLeft();
}

void CoreServer::OnDurable(const Status& status, std::uint64_t sequence) {
  if (!status.ok()) return Fail(status);
  const Turn turn(turns_);
  core_.JournalDurable(sequence, Now(), actions_);
  CarryOut(actions_);
}

void CoreServer::OnTick() {
  const Turn turn(turns_);
  core_.Tick(Now(), actions_);
  CarryOut(actions_);
  CompactIfWanted();
}

void CoreServer::PublishMetrics() {
  const Turn turn(turns_);
  Sample sample;
  sample.cluster = core_.Measure();
  sample.turns = turns_;
  sample.clock_seconds = WallClockSeconds();
  sample.journal_bytes = journal_->waiting_bytes();
  sample.memory_bytes = ResidentBytes();
  sample.state_free_bytes = FreeBytes(Folders::OfThisProcess(), options_.state_folder).value_or(0);
  metrics_->Publish(std::move(sample));
}

void CoreServer::CompactIfWanted() {
  if (!journal_->WantsCompaction()) return;
  journal_->Compact(core_.last_sequence(), core_.EncodeSnapshot());
}

void CoreServer::CarryOut(Actions& actions) {
  if (!actions.records.empty()) journal_->Append(std::move(actions.records));
  for (auto& send : actions.sends) Send(send.peer, send.request_id, std::move(send.body));
  for (const PeerId peer : actions.disconnects) {
    socket_->Disconnect(peer);
    joined_.erase(peer);
  }
  const auto requests = std::exchange(actions.host_requests, {});
  actions.Clear();
  for (const auto& request : requests) ServeHostRequest(request);
  socket_->Pause(core_.gauges().undurable_records > kUndurableRecordsMax ||
                 journal_->waiting_bytes() > kWaitingBytesMax);
}

void CoreServer::Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body) {
  const protocol::Envelope envelope{
      .sender_incarnation = incarnation_, .request_id = request_id, .body = std::move(body)};
  const auto bytes = encoder_.Encode(envelope);
  if (!bytes.ok()) {
    LogError(StrCat("an answer was not sent: ", MessageOf(bytes.status())));
    if (request_id != 0) Refuse(peer, request_id, bytes.status());
    return;
  }
  if (const auto it = awaited_.find({peer, request_id}); it != awaited_.end()) {
    replies_.Keep({joined_[peer], it->second, request_id}, std::string(AsText(*bytes)));
    awaited_.erase(it);
  }
  // A peer that is gone asks again when it is back; its leases look after themselves.
  socket_->Send(peer, *bytes).IgnoreError();
  if (!std::holds_alternative<protocol::TrainerDetached>(envelope.body)) return;
  ForgetTrainer(peer);
  EndWhenLeft();
}

void CoreServer::Refuse(PeerId peer, std::uint64_t request_id, const Status& why) {
  protocol::RequestFailed failed;
  failed.outcome = {static_cast<std::int32_t>(why.code()), std::string(MessageOf(why))};
  Send(peer, request_id, std::move(failed));
}

void CoreServer::ServeHostRequest(const HostRequest& request) {
  switch (request.kind) {
    case HostRequest::Kind::kReloadKeys: {
      const Status reloaded = ReloadKeys();
      if (reloaded.ok()) return Send(request.peer, request.request_id, protocol::KeysReloaded{});
      return Refuse(request.peer, request.request_id, reloaded);
    }
    case HostRequest::Kind::kAdmitBrowser:
      return AdmitBrowser(request);
    case HostRequest::Kind::kShutDown:
      LogInfo("asked to shut down");
      Send(request.peer, request.request_id, Stopping());
      return DrainThenStop();
  }
}

void CoreServer::AdmitBrowser(const HostRequest& request) {
  const Status admitted = dashboard_ == nullptr
                              ? FailedPrecondition(
                                    "admit browser: this cluster has no dashboard: `patchbay up "
                                    "--dashboard PORT` starts one that has")
                              : dashboard_->Admit(request.code, request.identity);
  if (!admitted.ok()) return Refuse(request.peer, request.request_id, admitted);
  LogInfo(StrCat("a browser sees the dashboard as key ", request.identity.key_name));
  Send(request.peer, request.request_id, protocol::BrowserAdmitted{});
}

Status CoreServer::ReloadKeys() {
  PB_ASSIGN_OR_RETURN(auto keys, control::AuthorizedKeys::Load(options_.keys_folder));
  std::vector<std::string> revoked;
  for (const control::KnownKey& key : keys.List()) {
    if (key.revoked) revoked.push_back(key.name);
  }
  if (dashboard_ != nullptr) {
    dashboard_->KeepKeys([&](const std::string& name) {
      const control::KnownKey* const key = keys.FindByName(name);
      return key != nullptr && !key->revoked;
    });
  }
  socket_->ReplaceKeys(std::move(keys));
  timers_.push_back(loop_.After(0, [this, revoked = std::move(revoked)] {
    core_.KeysRevoked(revoked, Now(), actions_);
    CarryOut(actions_);
  }));
  return absl::OkStatus();
}

void CoreServer::DrainThenStop() {
  if (std::exchange(draining_, true)) return;
  for (const PeerId agent : agents_) Send(agent, 0, protocol::Drain{});
  AnnounceStop();
  if (agents_.empty()) return End();
  timers_.push_back(loop_.After(options_.grace_ms, [this] { End(); }));
}

void CoreServer::AnnounceStop() {
  core_.StopGranting();
  for (const PeerId trainer : trainers_) Send(trainer, 0, Stopping());
  told_trainers_.merge(std::exchange(trainers_, {}));
  timers_.push_back(loop_.After(kTrainersLeaveMs, [this] {
    told_trainers_.clear();
    EndWhenLeft();
  }));
}

void CoreServer::ForgetTrainer(PeerId peer) {
  trainers_.erase(peer);
  told_trainers_.erase(peer);
}

/// Listens on until trainers have left and agents that drain have handed back what they hold. Other
/// nodes stay, and register with the next start.
void CoreServer::Stop() {
  if (std::exchange(signalled_, true)) return End();
  AnnounceStop();
  timers_.push_back(loop_.After(agents_.empty() ? 0 : kSignalSpreadMs, [this] {
    may_end_ = true;
    EndWhenLeft();
  }));
  timers_.push_back(loop_.After(options_.grace_ms, [this] { End(); }));
}

void CoreServer::EndWhenLeft() {
  if (may_end_ && told_trainers_.empty() && leaving_agents_.empty()) End();
}

void CoreServer::End() {
  socket_->StopAdmitting();
  timers_.push_back(loop_.After(kStopDelayMs, [this] {
    core_.WriteUsage(Now(), actions_);
    CarryOut(actions_);
    loop_.Stop();
  }));
}

void CoreServer::Fail(Status why) {
  if (!outcome_.ok()) return;
  outcome_ = std::move(why);
  LogError(StrCat("stopping: ", MessageOf(outcome_)));
  loop_.Stop();
}

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Open(control::EventLoop& loop,
                                               const ServerOptions& options) {
  auto server = std::make_unique<CoreServer>(loop, options);
  PB_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace patchbay::scheduler
