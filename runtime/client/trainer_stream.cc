// One rank of one stream: a control thread that speaks with the scheduler, the delivery threads of
// runtime/wire/data, and the user's thread in Next.

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "runtime/client/client.h"
#include "runtime/client/scheduler_away.h"
#include "runtime/client/send_in_parts.h"
#include "runtime/client/stream.h"
#include "runtime/client/stream_breakdown.h"
#include "runtime/client/stream_plan.h"
#include "runtime/client/trainer_core.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/model/plan/ring_size.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/host_identity.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/ring_server.h"

namespace patchbay::client {

using protocol::Body;

namespace {

constexpr std::int64_t kPlanPollMs = 50;
constexpr std::int64_t kWaitLookMs = 100;  ///< whether to go on waiting
constexpr std::int64_t kDetachTimeoutMs = 5'000;
constexpr std::int64_t kHurriedDetachMs = 300;  ///< once the user asked to stop waiting
constexpr std::int64_t kReattachPauseMs = 500;
constexpr std::int64_t kFencePollMs = 1;
constexpr std::int64_t kFenceGraceMs = 10'000;  ///< a consumer's device work at the end of a stream

}  // namespace

class TrainerStream final : public Stream {
 public:
  explicit TrainerStream(const StreamOptions& options)
      : options_(options), away_(StrCat("stream ", options.job), options.scheduler_grace_ms) {}
  ~TrainerStream() override;

  Status Open(const OpenSession& open);

  StatusOr<Batch> Next(std::int64_t timeout_ms) override;
  Status FinishUnit(std::uint64_t unit, const Outcome& outcome) override;
  Status Detach() override;
  const StreamGeometry& geometry() const override { return plan_.geometry; }
  const BatchLayout& layout() const override { return *plan_.layout; }
  Digest plan_digest() const override { return plan_.digest; }
  std::uint64_t batches_per_epoch() const override { return BatchesPerEpoch(plan_.geometry); }
  std::string ResumeToken() const override;
  StreamStats stats() const override;
  std::uint64_t ring_bytes() const override { return core_->ring().memory().host().size(); }
  const data::RingMemory& ring_memory() const override { return core_->ring().memory(); }

 private:
  Status Connect(const OpenSession& open);
  StatusOr<Body> Call(Body command, std::int64_t deadline_ms);
  Status FetchPlan(std::int64_t deadline_ms);
  Status MakeRing();
  Status StartDelivery();
  Status FirstAttach(std::int64_t deadline_ms);
  Status CheckAttached(const Body& answer);
  protocol::AttachTrainer AttachCommand();

  // On the control thread.
  void OnConnected();
  void OnLost(const Status& why);
  void OnFact(Body fact);
  void OnFence(const protocol::FenceShard& fence);
  void OnUnits(const protocol::UnitsAssigned& units);
  void OnStopping(std::uint64_t ms);
  void Attach();
  void Heartbeat();
  bool NamedHolderEnded() const;
  void ReportDroppedPeers();
  void LookForScheduler();
  void BeginDetach();
  void LookAtDetach(std::int64_t begun_ms);
  void EndDetach(const Status& answer);
  void Flush();
  void ReportFenced(const data::FenceOutcome& outcome);
  void ReportIfResting(std::uint32_t slot, const protocol::SlotRow& row);

  bool IsFork() const { return getpid() != owner_; }
  Status OwnedElsewhere() const {
    return FailedPrecondition("the stream belongs to process ", owner_, ", not to its fork");
  }
  void Leak();

  const StreamOptions options_;
  const pid_t owner_ = getpid();
  StreamPlan plan_;
  protocol::TrainerEndpoint endpoint_;
  std::uint64_t incarnation_ = RandomU64();
  std::shared_ptr<TrainerCore> core_;
  std::unique_ptr<data::RemoteReceiver> receiver_;
  std::unique_ptr<data::RingServer> server_;

  std::unique_ptr<control::EventLoop> loop_;
  std::unique_ptr<control::Session> session_;
  bool set_up_ = false;                      ///< the first attach succeeded
  bool all_finished_ = false;                ///< every unit: there is nothing to attach to
  bool attached_ = false;                    ///< this connection knows us
  bool attach_pending_ = false;              ///< an AttachTrainer waits for its answer
  std::vector<std::int64_t> named_holders_;  ///< in the last AttachTrainer
  bool fence_timer_set_ = false;
  std::uint32_t scheduler_incarnation_ = 0;
  std::vector<protocol::PeersDropped::Item> told_dropped_;
  control::EventLoop::Id attach_again_ = 0;  ///< the one timer for it
  SchedulerAway away_;

  bool leaving_ = false, detach_begun_ = false;  ///< on the control thread
  bool detached_ = false;                        ///< asked by the user
  std::promise<Status> detach_answer_;           ///< set once, on the control thread
  control::EventLoop::Id detach_look_ = 0;       ///< runs as long as the answer is waited for
  StreamTimer timer_;
  std::thread thread_;
};

// ---------------------------------------------------------------- set-up, on the caller's thread

Status TrainerStream::Open(const OpenSession& open) {
  const std::string context = StrCat("attach to stream ", options_.job);
  if (options_.first.epoch > kMaxEpoch) {
    return InvalidArgument(context, ": epoch ", options_.first.epoch, " is past the last one, ",
                           kMaxEpoch);
  }
  PB_ASSIGN_OR_RETURN(loop_, control::EventLoop::Open());
  const std::int64_t deadline = loop_->NowMs() + options_.attach_timeout_ms;
  PB_RETURN_IF_ERROR(Annotate(Connect(open), context));
  PB_RETURN_IF_ERROR(Annotate(FetchPlan(deadline), context));
  PB_RETURN_IF_ERROR(Annotate(MakeRing(), context));
  PB_RETURN_IF_ERROR(Annotate(StartDelivery(), context));
  PB_RETURN_IF_ERROR(Annotate(FirstAttach(deadline), context));
  core_->SetLoop(loop_.get(), [this] { Flush(); });
  loop_->Every(options_.heartbeat_ms, [this] { Heartbeat(); });
  loop_->Post([this] { Flush(); });
  thread_ = std::thread([this] { loop_->Run(); });
  return absl::OkStatus();
}

Status TrainerStream::Connect(const OpenSession& open) {
  control::Session::Callbacks callbacks;
  callbacks.on_connected = [this] { OnConnected(); };
  callbacks.on_lost = [this](const Status& why) { OnLost(why); };
  callbacks.on_fact = [this](Body fact) { OnFact(std::move(fact)); };
  PB_ASSIGN_OR_RETURN(session_, open(*loop_, std::move(callbacks)));
  return absl::OkStatus();
}

StatusOr<Body> TrainerStream::Call(Body command, std::int64_t deadline_ms) {
  // Shared, because a refused key ends the wait before the answer arrives.
  const auto answer = std::make_shared<std::optional<StatusOr<Body>>>();
  const std::int64_t timeout = std::max<std::int64_t>(1, deadline_ms - loop_->NowMs());
  session_->Request(std::move(command), timeout,
                    [answer](StatusOr<Body> received) { answer->emplace(std::move(received)); });
  while (!answer->has_value()) {
    if (options_.keep_waiting && !options_.keep_waiting()) return Cancelled("given up");
    loop_->RunOnce(options_.keep_waiting ? kWaitLookMs : 1000);
    const Status state = session_->state();
    if (!session_->connected() && absl::IsPermissionDenied(state)) return state;
  }
  return std::move(**answer);
}

Status TrainerStream::FetchPlan(std::int64_t deadline_ms) {
  for (;;) {
    PB_ASSIGN_OR_RETURN(
        std::optional<StreamPlan> plan,
        FetchStreamPlan(options_.job, [&](Body ask) { return Call(std::move(ask), deadline_ms); }));
    if (plan.has_value()) {
      plan_ = *std::move(plan);
      break;
    }
    if (loop_->NowMs() >= deadline_ms) return DeadlineExceeded("it is not planned yet");
    loop_->RunUntil([] { return false; }, kPlanPollMs);
  }
  return CheckIsMeant(plan_, options_.world_size, options_.resume);
}

Status TrainerStream::MakeRing() {
  data::SlotTableOptions table;
  table.stream = options_.job;
  table.rank = options_.rank;
  table.geometry = plan_.geometry;
  if (options_.prefetch > kMaxRingSlots - 2) {
    return InvalidArgument("prefetch ", options_.prefetch, " is too large");
  }
  table.slots = options_.prefetch + 2;
  table.spares = options_.spares;
  table.first = options_.first;
  // The counts are checked before any memory is asked for.
  PB_RETURN_IF_ERROR(data::SlotTable::Create(table).status());
  const bool on_device = options_.memory == SlotMemory::kDevice;
  PB_ASSIGN_OR_RETURN(const SlotLayout slot,
                      SlotLayout::Of(*plan_.layout, Capacity(plan_.geometry), on_device));
  PB_ASSIGN_OR_RETURN(const data::RingBytes bytes,
                      data::RingBytesOf(slot, table.slots + table.spares));
  PB_RETURN_IF_ERROR(plan::CheckRingFits(
      {slot.host_stride(), table.slots + table.spares, options_.prefetch}, AvailableMemory()));
  PB_ASSIGN_OR_RETURN(auto memory, on_device ? data::MakeDeviceRingMemory(options_.device, bytes)
                                             : data::MakeHostRingMemory(bytes.host));
  PB_ASSIGN_OR_RETURN(auto ring, data::Ring::Create(table, *plan_.layout, std::move(memory)));
  core_ = std::make_shared<TrainerCore>(std::move(ring));
  return absl::OkStatus();
}

Status TrainerStream::StartDelivery() {
  data::StreamSecret secret;
  FillRandom(secret);
  endpoint_.rank = options_.rank;
  endpoint_.node = options_.node.empty() ? HostName() : options_.node;
  endpoint_.host_identity = options_.host_identity;
  if (endpoint_.host_identity.empty()) {
    PB_ASSIGN_OR_RETURN(endpoint_.host_identity, HostIdentity());
  }
  endpoint_.stream_secret = std::string(AsText(secret));
  if (options_.network.policy != data::NetworkPolicy::kNone) {
    PB_ASSIGN_OR_RETURN(
        receiver_, data::RemoteReceiver::Start(
                       core_->ring(),
                       {options_.network, secret, {options_.job, options_.rank, incarnation_}}));
    endpoint_.remote_address = receiver_->address();
  }
  data::RingServer::Options server;
  server.secret = secret;
  server.stream = options_.job;
  if (receiver_ != nullptr) {
    server.remote_gone = [receiver = receiver_.get()](const ShardId& shard,
                                                      const LeaseNumber& lease) {
      return receiver->EndTransfer(shard, lease);
    };
  }
  server.fenced = [core = core_.get()](const data::FenceOutcome& outcome) {
    if (!outcome.status.ok()) core->ring().Fail(outcome.status);
    core->OnFenced(outcome);
  };
  PB_ASSIGN_OR_RETURN(server_, data::RingServer::Start(core_->ring(), std::move(server)));
  endpoint_.socket_name = server_->socket_name();
  return absl::OkStatus();
}

/// From now on until the answer no process maps the ring: the processes named in the command are
/// all that may write under leases of a former scheduler.
protocol::AttachTrainer TrainerStream::AttachCommand() {
  protocol::AttachTrainer attach;
  attach.stream = options_.job;
  attach.rank = options_.rank;
  attach.world_size = options_.world_size;
  attach.trainer_incarnation = incarnation_;
  attach.pid = getpid();
  attach.endpoint = endpoint_;
  const Position next = core_->ring().next();
  attach.first_epoch = next.epoch;
  attach.first_batch = next.batch;
  for (const data::SlotReport& report : core_->ring().ReportAll()) {
    attach.slots.push_back(ToRow(report));
  }
  attach.units = core_->ring().units();
  attach.holders = named_holders_ = server_->StopAdmitting();
  return attach;
}

Status TrainerStream::CheckAttached(const Body& answer) {
  if (const auto* units = std::get_if<protocol::UnitsAssigned>(&answer); units != nullptr) {
    OnUnits(*units);
    if (all_finished_) return absl::OkStatus();
  }
  const auto* attached = std::get_if<protocol::TrainerAttached>(&answer);
  if (attached == nullptr) return Internal("attach: unexpected answer type");
  if (attached->plan_digest != plan_.digest || attached->geometry != plan_.geometry) {
    return FailedPrecondition("the scheduler streams another plan than the one that was fetched");
  }
  scheduler_incarnation_ = attached->scheduler_incarnation;
  server_->AdmitSince(scheduler_incarnation_);
  attached_ = true;
  return absl::OkStatus();
}

Status TrainerStream::FirstAttach(std::int64_t deadline_ms) {
  PB_ASSIGN_OR_RETURN(const Body answer, Call(AttachCommand(), deadline_ms));
  PB_RETURN_IF_ERROR(CheckAttached(answer));
  set_up_ = true;
  return absl::OkStatus();
}

// ---------------------------------------------------------------- the control thread

void TrainerStream::OnConnected() {
  if (const std::string back = away_.Back(); !back.empty()) LogWarning(back);
  if (set_up_) Attach();
}

void TrainerStream::OnLost(const Status& why) {
  attached_ = false;
  away_.Lost(loop_->NowMs());
  if (set_up_ && absl::IsPermissionDenied(why)) core_->ring().Fail(why);
}

/// Tells a scheduler that does not know this trainer (a new connection, a new incarnation) its
/// identity and the content of its slots: this table is authoritative. Events until the answer stay
/// in the outbox.
void TrainerStream::Attach() {
  attached_ = false;
  told_dropped_.clear();
  if (attach_pending_ || all_finished_ || leaving_) return;
  attach_pending_ = true;
  loop_->Cancel(attach_again_);
  session_->Request(AttachCommand(), 0, [this](StatusOr<Body> answer) {
    attach_pending_ = false;
    Status status = answer.status();
    if (status.ok()) status = CheckAttached(*answer);
    if (status.ok()) return Flush();
    if (IsFinal(status)) {
      return core_->ring().Fail(Annotate(status, StrCat("attach to stream ", options_.job)));
    }
    attach_again_ = loop_->After(kReattachPauseMs, [this] {
      if (!attached_ && session_->connected()) Attach();
    });
  });
}

void TrainerStream::Heartbeat() {
  if (session_->connected()) {
    session_->Tell(timer_.HeartbeatWith(core_->ring().stats().shards_counted)).IgnoreError();
    ReportDroppedPeers();
    if (attached_ && NamedHolderEnded()) Attach();
  } else {
    LookForScheduler();
  }
}

/// The scheduler may be waiting for one of them whose end only this process saw.
bool TrainerStream::NamedHolderEnded() const {
  const std::vector<std::int64_t> holders = server_->Holders();
  return std::any_of(named_holders_.begin(), named_holders_.end(), [&](std::int64_t pid) {
    return std::find(holders.begin(), holders.end(), pid) == holders.end();
  });
}

/// Reports the peers that the data path turned away, when this scheduler has another list.
void TrainerStream::ReportDroppedPeers() {
  if (receiver_ == nullptr || !attached_) return;
  protocol::PeersDropped dropped;
  dropped.stream = options_.job;
  dropped.rank = options_.rank;
  for (DroppedPeer& peer : receiver_->dropped_peers()) {
    if (dropped.items.size() == protocol::kMaxDroppedPeers) break;
    dropped.items.push_back(
        {std::move(peer.address), std::move(peer.reason), peer.times, peer.last_at});
  }
  if (dropped.items == told_dropped_) return;
  if (session_->Tell(dropped).ok()) told_dropped_ = std::move(dropped.items);
}

/// Says how long the stream still waits, or ends it.
void TrainerStream::LookForScheduler() {
  const StatusOr<std::string> said = away_.Look(loop_->NowMs(), session_->state());
  if (!said.ok()) return core_->ring().Fail(said.status());
  if (!said->empty()) LogWarning(*said);
}

void TrainerStream::OnFact(Body fact) {
  if (auto* fence = std::get_if<protocol::FenceShard>(&fact)) return OnFence(*fence);
  if (auto* failed = std::get_if<protocol::StreamFailed>(&fact)) {
    if (failed->stream == options_.job && core_ != nullptr) {
      Status why = StatusOf(failed->outcome);
      if (why.ok()) why = Cancelled("the scheduler ended the stream");
      core_->ring().Fail(Annotate(why, StrCat("stream ", options_.job)));
    }
    return;
  }
  if (auto* units = std::get_if<protocol::UnitsAssigned>(&fact)) return OnUnits(*units);
  if (auto* stop = std::get_if<protocol::ShuttingDown>(&fact)) return OnStopping(stop->deadline_ms);
  if (auto* seen = std::get_if<protocol::HeartbeatSeen>(&fact)) {
    if (attached_ && seen->scheduler_incarnation != scheduler_incarnation_) Attach();
  }
}

void TrainerStream::OnUnits(const protocol::UnitsAssigned& units) {
  if (units.stream != options_.job || core_ == nullptr) return;
  core_->ring().AddUnits(units.units);
  if (!units.all_finished) return;
  all_finished_ = true;
  core_->ring().Fail(
      absl::OutOfRangeError(StrCat("stream ", options_.job, ": every unit is finished")));
}

/// Leaves while the scheduler still takes it down: its next start then knows of no such stream.
void TrainerStream::OnStopping(std::uint64_t ms) {
  auto said = StrCat("stream ", options_.job, ": the cluster is stopping within ", ms / 1000, " s");
  const bool leaves = options_.leave_when_stopping && set_up_ && !std::exchange(leaving_, true);
  if (!leaves) return LogInfo(said);
  core_->ring().Fail(absl::AbortedError(said));
  BeginDetach();
}

void TrainerStream::OnFence(const protocol::FenceShard& fence) {
  if (fence.stream != options_.job || server_ == nullptr) return;
  server_->Fence(data::FenceRequest{fence.shard, fence.lease, fence.worker_pid, fence.grant});
}

void TrainerStream::ReportFenced(const data::FenceOutcome& outcome) {
  if (!outcome.status.ok()) return;  // the ring has failed; there is nothing to lease again
  protocol::ShardFenced fenced;
  fenced.stream = options_.job;
  fenced.lease = outcome.request.lease;
  fenced.shard = outcome.request.shard;
  fenced.row = ToRow(outcome.row);
  fenced.already_counted = outcome.already_counted;
  ReportIfResting(outcome.request.grant.slot, fenced.row);
  session_->Tell(fenced).IgnoreError();
}

/// The slot was left to a writer that may still live, and its batch is now in `row`. The answer to
/// the fence tells this, but a scheduler that has started since does not wait for that answer.
void TrainerStream::ReportIfResting(std::uint32_t slot, const protocol::SlotRow& row) {
  const std::vector<data::SlotReport> slots = core_->ring().ReportAll();
  if (slot >= slots.size() || slots[slot].phase != data::SlotPhase::kResting) return;
  protocol::AnnounceSlots announce;
  announce.stream = options_.job;
  announce.rank = options_.rank;
  announce.slots.push_back(ToRow(slots[slot]));
  announce.slots.push_back(row);
  session_->Tell(announce).IgnoreError();
}

void TrainerStream::Flush() {
  TrainerCore::Outbox outbox = core_->TakeOutbox();
  if (outbox.waiting_for_fences && !fence_timer_set_) {
    fence_timer_set_ = true;
    loop_->After(kFencePollMs, [this] {
      fence_timer_set_ = false;
      Flush();
    });
  }
  if (!attached_) return core_->Return(std::move(outbox));
  protocol::ShardsCounted counted;
  counted.stream = options_.job;
  counted.rank = options_.rank;
  SendInParts(*session_, std::move(counted), &protocol::ShardsCounted::items, outbox.counted);
  protocol::AnnounceSlots announce;
  announce.stream = options_.job;
  announce.rank = options_.rank;
  SendInParts(*session_, std::move(announce), &protocol::AnnounceSlots::slots, outbox.freed);
  for (const data::FenceOutcome& outcome : outbox.fenced) ReportFenced(outcome);
}

void TrainerStream::BeginDetach() {
  if (std::exchange(detach_begun_, true)) return;
  Flush();
  ReportDroppedPeers();
  const std::int64_t begun_ms = loop_->NowMs();
  detach_look_ = loop_->Every(kWaitLookMs, [this, begun_ms] { LookAtDetach(begun_ms); });
  session_->Request(protocol::DetachTrainer{options_.job, options_.rank}, kDetachTimeoutMs,
                    [this](const StatusOr<Body>& answer) { EndDetach(answer.status()); });
  LookAtDetach(begun_ms);
}

/// A scheduler that was away for longer than a restart takes forgets this trainer by itself.
void TrainerStream::LookAtDetach(std::int64_t begun_ms) {
  const std::int64_t now_ms = loop_->NowMs();
  if (!session_->connected() && away_.AwayMs(now_ms) >= kSayAwayAfterMs) {
    return EndDetach(session_->state());
  }
  const bool hurry = options_.keep_waiting && !options_.keep_waiting();
  if (hurry && now_ms - begun_ms >= kHurriedDetachMs) EndDetach(Cancelled("given up"));
}

void TrainerStream::EndDetach(const Status& answer) {
  if (detach_look_ == 0) return;
  loop_->Cancel(std::exchange(detach_look_, 0));
  detach_answer_.set_value(answer);
}

// ---------------------------------------------------------------- the user's thread

StatusOr<Batch> TrainerStream::Next(std::int64_t timeout_ms) {
  if (IsFork()) return OwnedElsewhere();
  timer_.BeginWait();
  const auto taken = core_->ring().Next(timeout_ms, options_.exhausted_grace_ms);
  timer_.EndWait(taken.ok());
  if (!taken.ok()) return taken.status();
  Batch batch;
  batch.at_ = taken->at;
  batch.count_ = taken->patches;
  if (const UnitRuns& units = plan_.geometry.units; !units.empty()) {
    batch.unit_ = units.OfBatch(taken->at.batch);
  }
  batch.data_ = taken->arrays;
  batch.layout_ = plan_.layout;
  batch.on_device_ = options_.memory == SlotMemory::kDevice;
  batch.CountReal(plan_.RealPatches(taken->at, options_.rank));
  if (taken->slot.has_value()) {
    batch.hold_ = std::make_shared<SlotHold>(core_, *taken->slot, taken->generation);
  }
  timer_.Count(taken->patches, taken->size_bytes);
  return batch;
}

Status TrainerStream::FinishUnit(std::uint64_t unit, const Outcome& outcome) {
  if (IsFork()) return OwnedElsewhere();
  const auto answer = std::make_shared<std::promise<Status>>();
  std::future<Status> answered = answer->get_future();
  loop_->Post([this, unit, outcome, answer] {
    session_->Request(protocol::FinishUnit{options_.job, options_.rank, unit, outcome},
                      options_.scheduler_grace_ms, [this, unit, answer](StatusOr<Body> received) {
                        if (received.ok()) core_->ring().RemoveUnit(unit);
                        answer->set_value(received.status());
                      });
  });
  while (answered.wait_for(std::chrono::milliseconds(kWaitLookMs)) != std::future_status::ready) {
    if (options_.keep_waiting && !options_.keep_waiting()) return Cancelled("given up");
  }
  return Annotate(answered.get(), StrCat("finish unit ", unit));
}

Status TrainerStream::Detach() {
  if (IsFork()) return OwnedElsewhere();
  if (std::exchange(detached_, true)) return absl::OkStatus();
  if (!set_up_ || !thread_.joinable()) return absl::OkStatus();
  timer_.Stop();
  std::future<Status> answer = detach_answer_.get_future();
  loop_->Post([this] { BeginDetach(); });
  const Status status = answer.get();
  core_->ring().Fail(FailedPrecondition("next batch: the stream was detached"));
  return Annotate(status, StrCat("detach from stream ", options_.job));
}

/// In a forked child: the threads are not there, the sockets are the parent's. Nothing is touched.
void TrainerStream::Leak() {
  (void)new std::thread(std::move(thread_));
  (void)new std::shared_ptr<TrainerCore>(std::move(core_));
  (void)server_.release();
  (void)receiver_.release();
  (void)session_.release();
  (void)loop_.release();
}

TrainerStream::~TrainerStream() {
  if (IsFork()) {
    Leak();
    return;
  }
  if (const Status detached = Detach(); !detached.ok()) LogWarning(Describe(detached));
  if (core_ != nullptr && thread_.joinable()) {
    const std::int64_t give_up = SteadyNowNs() / 1'000'000 + kFenceGraceMs;
    while (core_->HasUnreleasedSlots() && SteadyNowNs() / 1'000'000 < give_up)
      std::this_thread::yield();
  }
  if (core_ != nullptr) core_->SetLoop(nullptr, {});
  if (thread_.joinable()) {
    loop_->Stop();
    thread_.join();
  }
  server_.reset();  // its thread asks the receiver about transfers
  receiver_.reset();
  session_.reset();
}

std::string TrainerStream::ResumeToken() const {
  const client::ResumeToken token{core_->ring().next(), plan_.digest, plan_.sections,
                                  plan_.geometry.global_batch};
  return token.Text();
}

StreamStats TrainerStream::stats() const {
  StreamStats stats = timer_.stats();
  const data::RingStats ring = core_->ring().stats();
  stats.shards_refused = ring.shards_refused;
  stats.shards_corrupt = ring.shards_corrupt;
  stats.batches_moved = ring.batches_moved;
  stats.stages = ring.stages;
  if (receiver_ != nullptr) {
    stats.remote_bytes = receiver_->bytes_counted();
    stats.connections_dropped = receiver_->connections_dropped();
  }
  return stats;
}

StatusOr<std::unique_ptr<Stream>> Stream::AttachOver(const OpenSession& open,
                                                     const StreamOptions& options) {
  auto stream = std::make_unique<TrainerStream>(options);
  PB_RETURN_IF_ERROR(stream->Open(open));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace patchbay::client
