#include "workers/process/worker_session.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/core/outcome.h"
#include "runtime/memory/gpu.h"
#include "runtime/model/plan/byte_versions.h"
#include "workers/access/subject_table.h"
#include "workers/process/child_process.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr TimeMs kHeartbeatMs = 500;
constexpr int kOwnHeartbeatsApart = 2;
constexpr TimeMs kRenewMs = 1'000;
constexpr TimeMs kRetryMs = 500;
constexpr TimeMs kDrainAnswerMs = 2'000;  ///< also for a scheduler that takes no reports meanwhile
constexpr std::size_t kReportItemsMax = 4'096;
constexpr std::size_t kReportBytesMax = 4u << 20;
constexpr int kReportsPendingMax = 4;
constexpr std::size_t kStreamsMax = 64;
constexpr std::size_t kTaskSpecBytes =
    256;  ///< about what one takes on the wire besides its payload

std::size_t WireBytes(const protocol::TasksFinished::Item& item) {
  std::size_t bytes = kTaskSpecBytes + item.result.size() + BytesOf(item.outcome);
  for (const protocol::TaskSpec& task : item.spawned) bytes += kTaskSpecBytes + task.payload.size();
  return bytes;
}

}  // namespace

StatusOr<std::unique_ptr<WorkerSession>> WorkerSession::Open(control::EventLoop& loop,
                                                             const WorkerOptions& options) {
  std::unique_ptr<WorkerSession> session(new WorkerSession(loop, options));
  PB_RETURN_IF_ERROR(session->Start());
  return session;
}

WorkerSession::WorkerSession(control::EventLoop& loop, const WorkerOptions& options)
    : loop_(loop), options_(options) {}

WorkerSession::~WorkerSession() = default;

Status WorkerSession::Start() {
  images_ = std::make_unique<ImageCache>(
      options_.image_bytes_max,
      [caches = ReadCaches::Of(options_.read_caches)](
          const Folders& allowed, const std::string& path, const SlideChoice& choice) {
        auto image = OpenChosenSlide(allowed, path, choice, caches);
        if (image.ok()) (*image)->KeepToTiles();
        return image;
      });
  delivery_ = std::make_unique<TrainerDelivery>(options_.delivery);
  const std::string gpu_uuid = options_.delivery.gpu_uuid;
  PatchMakerFactory makers = [gpu_uuid, functions = options_.tasks.functions](
                                 PatchEnded ended) -> StatusOr<std::unique_ptr<PatchMaker>> {
    if (gpu_uuid.empty()) return MakeCpuPatchMaker(std::move(ended), functions);
    return MakeGpuPatchMaker(gpu_uuid, std::move(ended));
  };
  PB_ASSIGN_OR_RETURN(
      pipeline_, Pipeline::Start(options_.pipeline, *delivery_, std::move(makers),
                                 [this](const protocol::ShardLease& lease, const Status& status,
                                        const ShardSpent& spent) {
                                   loop_.Post([=, this] { OnShardEnded(lease, status, spent); });
                                 }));
  const TaskEnded ended = [this](protocol::TasksFinished::Item item) {
    auto shared = std::make_shared<protocol::TasksFinished::Item>(std::move(item));
    loop_.Post([this, shared] { OnTaskEnded(std::move(*shared)); });
  };
  TaskRunnerOptions planning = options_.tasks;
  planning.plans = true;
  tasks_ = std::make_unique<TaskRunner>(options_.tasks, ended);
  planning_ = std::make_unique<TaskRunner>(planning, ended);
  control::Session::Callbacks callbacks;
  callbacks.on_connected = [this] { Register(); };
  callbacks.on_lost = [](const Status& status) {
    LogWarning(StrCat("the scheduler is not reachable: ", MessageOf(status)));
  };
  callbacks.on_fact = [this](protocol::Body body) { OnFact(std::move(body)); };
  PB_ASSIGN_OR_RETURN(session_, control::Session::Open(loop_, options_.key, std::move(callbacks)));
  loop_.Every(kHeartbeatMs, [this, beats = 0]() mutable {
    // The agent speaks for it; its own heartbeats find out whether it is still registered.
    if (draining_ || beats++ % kOwnHeartbeatsApart == 0) {
      session_->Tell(protocol::Heartbeat{tasks_->progress() + planning_->progress()}).IgnoreError();
    }
    delivery_->DropClosedRings();  // their trainers wait for it
  });
  loop_.Every(kRenewMs, [this] { Renew(); });
  return absl::OkStatus();
}

void WorkerSession::Register() {
  if (registering_) return;
  registering_ = true;
  registered_ = false;
  loop_.Cancel(register_again_);
  protocol::RegisterWorker offer;
  offer.node = options_.node;
  offer.index = options_.index;
  offer.agent_incarnation = options_.agent_incarnation;
  offer.worker_incarnation = options_.worker_incarnation;
  offer.pid = getpid();
  offer.numerics = options_.numerics;
  offer.byte_versions = plan::ByteVersionsText();
  offer.host_identity = options_.delivery.host_identity;
  offer.capacity = options_.capacity;
  std::set<LeaseNumber> offered;
  for (const auto& [number, held] : held_) {
    offer.held.push_back(held.lease);
    offered.insert(number);
  }
  session_->Request(std::move(offer), kRetryMs * 10,
                    [this, offered = std::move(offered)](StatusOr<protocol::Body> answer) {
                      OnRegistered(offered, std::move(answer));
                    });
}

void WorkerSession::OnRegistered(const std::set<LeaseNumber>& offered,
                                 StatusOr<protocol::Body> answer) {
  registering_ = false;
  const auto* registered =
      answer.ok() ? std::get_if<protocol::WorkerRegistered>(&*answer) : nullptr;
  if (registered == nullptr) {
    LogWarning(StrCat("register worker: ", MessageOf(answer.status())));
    register_again_ = loop_.After(kRetryMs, [this] {
      if (session_->connected()) Register();
    });
    return;
  }
  registered_ = true;
  scheduler_incarnation_ = registered->scheduler_incarnation;
  LogInfo(StrCat("registered with scheduler incarnation ", scheduler_incarnation_));
  DropFormer(offered);
  OnGranted(std::exchange(early_, {}));
  SendFinished();
}

void WorkerSession::OnFact(protocol::Body body) {
  heard_at_ms_ = loop_.NowMs();
  if (auto* granted = std::get_if<protocol::LeasesGranted>(&body)) {
    OnGranted(std::move(*granted));
  } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&body)) {
    for (const LeaseNumber& lease : revoked->leases) Revoke(lease);
  } else if (auto* described = std::get_if<protocol::StreamDescribed>(&body)) {
    OnStreamDescribed(std::move(*described));
  } else if (std::holds_alternative<protocol::Drain>(body)) {
    Drain();
  } else if (const auto* seen = std::get_if<protocol::HeartbeatSeen>(&body)) {
    if (scheduler_incarnation_ != 0 && seen->scheduler_incarnation != scheduler_incarnation_) {
      Register();
    }
  }
}

/// Drops leases that a former scheduler granted while this one was being told of the held ones:
/// this scheduler does not know of them.
void WorkerSession::DropFormer(const std::set<LeaseNumber>& offered) {
  std::vector<LeaseNumber> late;
  for (const auto& [number, held] : held_) {
    if (IsFormer(number) && !offered.contains(number)) late.push_back(number);
  }
  for (const LeaseNumber& lease : late) Revoke(lease);
}

/// A grant that arrives after its scheduler has ended is void.
void WorkerSession::OnGranted(protocol::LeasesGranted granted) {
  if (!registered_) {
    std::move(granted.tasks.begin(), granted.tasks.end(), std::back_inserter(early_.tasks));
    std::move(granted.shards.begin(), granted.shards.end(), std::back_inserter(early_.shards));
    return;
  }
  for (protocol::TaskLease& lease : granted.tasks) {
    if (!IsFormer(lease.lease)) TakeTask(std::move(lease));
  }
  for (const protocol::ShardLease& lease : granted.shards) {
    if (!IsFormer(lease.lease)) TakeShard(lease);
  }
}

void WorkerSession::TakeTask(protocol::TaskLease lease) {
  Held held;
  held.lease.lease = lease.lease;
  held.lease.task = lease.task;
  held.planning = lease.planning;
  if (!held_.emplace(lease.lease, held).second) return;  // a repeated grant
  if (lease.inputs_apart.empty()) return StartTask(std::move(lease));
  lease.inputs.assign(1, std::string());
  FetchInputs(std::make_shared<protocol::TaskLease>(std::move(lease)));
}

/// Requests the next piece of the input that is arriving.
void WorkerSession::FetchInputs(std::shared_ptr<protocol::TaskLease> lease) {
  const TaskId input{lease->task.job, lease->inputs_apart[lease->inputs.size() - 1]};
  const std::uint64_t offset = lease->inputs.back().size();
  session_->Request(
      protocol::FetchResult{input, offset}, 0,
      [this, lease](StatusOr<protocol::Body> answer) { OnInputFetched(lease, std::move(answer)); });
}

void WorkerSession::OnInputFetched(std::shared_ptr<protocol::TaskLease> lease,
                                   StatusOr<protocol::Body> answer) {
  if (!held_.contains(lease->lease)) return;  // revoked meanwhile
  const auto* fetched = answer.ok() ? std::get_if<protocol::ResultFetched>(&*answer) : nullptr;
  if (fetched == nullptr) {
    const Status why = answer.ok() ? Internal("unexpected answer type") : answer.status();
    return RefuseTask(*lease, Annotate(why, "fetch inputs of a task"));
  }
  std::string& input = lease->inputs.back();
  input += fetched->result;
  const bool more = input.size() < fetched->result_bytes;
  if (input.size() > protocol::kMaxResultBytes || (more && fetched->result.empty())) {
    return RefuseTask(*lease, Internal("fetch inputs of a task: shorter than announced"));
  }
  if (!more && lease->inputs.size() == lease->inputs_apart.size()) {
    return StartTask(std::move(*lease));
  }
  if (!more) lease->inputs.emplace_back();
  FetchInputs(std::move(lease));
}

void WorkerSession::StartTask(protocol::TaskLease lease) {
  protocol::TaskLease names;
  names.lease = lease.lease;
  names.task = lease.task;
  const Status taken = RunnerOf(lease.planning).Submit(std::move(lease));
  if (!taken.ok()) RefuseTask(names, taken);
}

/// The task did not run, and may elsewhere or later.
void WorkerSession::RefuseTask(const protocol::TaskLease& lease, const Status& why) {
  protocol::TasksFinished::Item item;
  item.lease = lease.lease;
  item.task = lease.task;
  item.outcome = OutcomeOf(WithCode(why, absl::StatusCode::kUnavailable));
  OnTaskEnded(std::move(item));
}

void WorkerSession::TakeShard(const protocol::ShardLease& lease) {
  Held held;
  held.lease.lease = lease.lease;
  held.lease.is_shard = true;
  held.lease.stream = lease.stream;
  held.lease.shard = lease.shard;
  if (!held_.emplace(lease.lease, held).second) return;  // a repeated grant
  Stream& stream = streams_[lease.stream];
  if (stream.context == nullptr) {
    stream.waiting.push_back(lease);
    AskForStream(lease.stream);
    return;
  }
  const Status taken = pipeline_->Submit(stream.context, lease);
  if (!taken.ok()) OnShardEnded(lease, taken);
}

void WorkerSession::AskForStream(std::uint64_t stream) {
  if (std::exchange(streams_[stream].asked, true)) return;
  const std::size_t have = streams_[stream].plan.size() + streams_[stream].manifest.size();
  session_->Request(protocol::FetchStream{stream, have}, 0,
                    [this, stream](StatusOr<protocol::Body> answer) {
                      OnStreamAnswer(stream, std::move(answer));
                    });
}

void WorkerSession::OnStreamAnswer(std::uint64_t stream, StatusOr<protocol::Body> answer) {
  streams_[stream].asked = false;
  if (answer.ok()) {
    if (auto* described = std::get_if<protocol::StreamDescribed>(&*answer)) {
      if (!TakeText(streams_[stream], *described)) return AskForStream(stream);
      if (!streams_[stream].plan.empty()) return OnStreamDescribed(std::move(*described));
    }
    answer = Internal("fetch stream: the answer has no plan");
  }
  const std::vector<protocol::ShardLease> waiting = std::move(streams_[stream].waiting);
  streams_.erase(stream);
  for (const protocol::ShardLease& lease : waiting) OnShardEnded(lease, answer.status());
}

/// Adds the received parts of plan and manifest; false when more must be requested. Wrong lengths
/// are found later by the digest and the parser of the manifest.
bool WorkerSession::TakeText(Stream& stream, const protocol::StreamDescribed& described) {
  const std::size_t before = stream.plan.size() + stream.manifest.size();
  stream.plan += described.plan;
  stream.manifest += described.manifest;
  const std::uint64_t whole = described.plan_bytes + described.manifest_bytes;
  const std::size_t have = stream.plan.size() + stream.manifest.size();
  return have == before || have >= whole || have > 2 * protocol::kMaxResultBytes;
}

/// Without a request, the message means that the trainers changed: the plan stays.
void WorkerSession::OnStreamDescribed(protocol::StreamDescribed described) {
  if (streams_[described.stream].asked) return;  // the answer says it too
  described.plan = streams_[described.stream].plan;
  described.manifest = streams_[described.stream].manifest;
  if (described.plan.empty()) return AskForStream(described.stream);
  StatusOr<std::shared_ptr<StreamContext>> context =
      StreamContext::Build(*options_.tasks.ops, described, *images_);
  Stream& stream = streams_[described.stream];
  const std::vector<protocol::ShardLease> waiting = std::exchange(stream.waiting, {});
  if (context.ok()) {
    stream.context = *context;
  } else {
    stream.plan.clear();
    stream.manifest.clear();
  }
  for (const protocol::ShardLease& lease : waiting) {
    if (!held_.contains(lease.lease)) continue;  // revoked meanwhile
    const Status taken = context.ok() ? pipeline_->Submit(stream.context, lease) : context.status();
    if (!taken.ok()) OnShardEnded(lease, taken);
  }
  ForgetIdleStreams();
}

void WorkerSession::ForgetIdleStreams() {
  for (auto it = streams_.begin(); streams_.size() > kStreamsMax && it != streams_.end();) {
    // Shards that are being made keep their context alive themselves.
    it = it->second.waiting.empty() && !it->second.asked ? streams_.erase(it) : std::next(it);
  }
}

/// Gives work back at once, so that the scheduler need not wait until the lease has expired.
void WorkerSession::RevokeEarly(const LeaseNumber& lease) {
  std::erase_if(early_.tasks, [&](const auto& early) { return early.lease == lease; });
  std::erase_if(early_.shards, [&](const protocol::ShardLease& early) {
    if (early.lease != lease) return false;
    ReturnShard(lease, early.stream, early.shard, Cancelled("revoked"));
    return true;
  });
}

void WorkerSession::Revoke(const LeaseNumber& lease) {
  RevokeEarly(lease);
  const auto it = held_.find(lease);
  // A grant that was lost on the way: the scheduler waits for the word that no one works under it.
  if (it == held_.end()) return ReturnShard(lease, 0, {}, Cancelled("revoked"));
  if (!it->second.lease.is_shard) {
    RunnerOf(it->second.planning).Revoke(lease);
    std::erase_if(to_report_, [&](const auto& item) { return item.lease == lease; });
    held_.erase(it);
    StopWhenEmpty();
    return;
  }
  const protocol::HeldLease held = it->second.lease;
  const std::size_t waiting =
      std::erase_if(streams_[held.stream].waiting,
                    [&](const protocol::ShardLease& shard) { return shard.lease == lease; });
  if (waiting > 0) {
    held_.erase(it);
    ReturnShard(lease, held.stream, held.shard, Cancelled("revoked"));
    StopWhenEmpty();
  } else {
    pipeline_->Revoke(lease);
  }
}

void WorkerSession::Renew() {
  protocol::RenewLeases renew;
  for (const auto& [number, held] : held_) {
    const std::uint64_t progress =
        held.lease.is_shard ? pipeline_->ProgressOf(number) : RunnerOf(held.planning).progress();
    // A finished task waits for the scheduler itself: its holder has nothing left to move.
    const std::int64_t cpu_us = held.lease.is_shard ? 0 : RunnerOf(held.planning).CpuUsOf(number);
    renew.items.push_back({number, held.finished ? ++finished_progress_ : progress, cpu_us});
  }
  for (const auto& early : early_.tasks) renew.items.push_back({early.lease, ++finished_progress_});
  for (const auto& early : early_.shards)
    renew.items.push_back({early.lease, ++finished_progress_});
  if (renew.items.empty() || !session_->connected()) return;
  session_->Request(std::move(renew), kRenewMs * 2, [this](StatusOr<protocol::Body> answer) {
    if (!answer.ok()) return;
    const auto* renewed = std::get_if<protocol::LeasesRenewed>(&*answer);
    if (renewed == nullptr) return;
    for (const LeaseNumber& lease : renewed->unknown) Revoke(lease);
  });
}

void WorkerSession::OnTaskEnded(protocol::TasksFinished::Item item) {
  const auto it = held_.find(item.lease);
  if (it == held_.end()) {  // revoked in the meantime: only its cost is news
    protocol::TasksFinished report;
    report.items.push_back(std::move(item));
    session_->Request(std::move(report), kRenewMs * 2, [](const StatusOr<protocol::Body>&) {});
    return;
  }
  if (item.outcome.code != 0) EndIfGpuIsLost();
  it->second.finished = true;
  if (item.result.size() > protocol::kMaxInlineResultBytes) {
    return PutParts(std::make_shared<protocol::TasksFinished::Item>(std::move(item)), 0);
  }
  to_report_.push_back(std::move(item));
  SendFinished();
}

/// Sends all but the end of a large result ahead of its report, piece by piece.
void WorkerSession::PutParts(std::shared_ptr<protocol::TasksFinished::Item> item,
                             std::size_t offset) {
  if (!held_.contains(item->lease)) return;  // revoked meanwhile
  if (item->result.size() - offset <= protocol::kMaxInlineResultBytes) {
    item->result.erase(0, offset);
    item->result_offset = offset;
    to_report_.push_back(std::move(*item));
    return SendFinished();
  }
  protocol::PutResultPart part{item->lease, item->task, offset,
                               item->result.substr(offset, protocol::kMaxInlineResultBytes)};
  const std::size_t next = offset + part.bytes.size();
  session_->Request(std::move(part), 0, [this, item, next](StatusOr<protocol::Body> answer) {
    if (answer.ok()) return PutParts(item, next);
    item->result.clear();
    item->spawned.clear();
    item->outcome = OutcomeOf(
        Annotate(WithCode(answer.status(), absl::StatusCode::kUnavailable), "put result part"));
    to_report_.push_back(std::move(*item));
    SendFinished();
  });
}

void WorkerSession::SendFinished() {
  while (!to_report_.empty() && reports_pending_ < kReportsPendingMax && session_->connected()) {
    std::vector<protocol::TasksFinished::Item> items;
    std::size_t bytes = 0;
    for (; items.size() < std::min(to_report_.size(), kReportItemsMax);) {
      bytes += WireBytes(to_report_[items.size()]);
      if (!items.empty() && bytes > kReportBytesMax) break;
      items.push_back(to_report_[items.size()]);
    }
    to_report_.erase(to_report_.begin(),
                     to_report_.begin() + static_cast<std::ptrdiff_t>(items.size()));
    ++reports_pending_;
    protocol::TasksFinished report;
    report.items = items;
    session_->Request(std::move(report), 0,
                      [this, items = std::move(items)](StatusOr<protocol::Body> answer) mutable {
                        OnFinishedAnswer(std::move(items), std::move(answer));
                      });
  }
}

void WorkerSession::OnFinishedAnswer(std::vector<protocol::TasksFinished::Item> items,
                                     StatusOr<protocol::Body> answer) {
  --reports_pending_;
  if (answer.ok()) {
    if (const auto* committed = std::get_if<protocol::TasksCommitted>(&*answer)) {
      for (const LeaseNumber& lease : committed->leases) held_.erase(lease);
    }
  } else {
    LogWarning(StrCat("report tasks: ", MessageOf(answer.status())));
  }
  std::erase_if(items, [this](const auto& item) { return !held_.contains(item.lease); });
  if (!items.empty()) {
    to_report_.insert(to_report_.end(), std::make_move_iterator(items.begin()),
                      std::make_move_iterator(items.end()));
    loop_.After(kRetryMs, [this] { SendFinished(); });
  } else {
    SendFinished();
  }
  StopWhenEmpty();
}

void WorkerSession::OnShardEnded(const protocol::ShardLease& lease, const Status& status,
                                 const ShardSpent& spent) {
  if (held_.erase(lease.lease) == 0) return;
  if (!status.ok()) EndIfGpuIsLost();
  ReturnShard(lease.lease, lease.stream, lease.shard, status, spent);
  StopWhenEmpty();
}

void WorkerSession::ReturnShard(const LeaseNumber& lease, std::uint64_t stream,
                                const ShardId& shard, const Status& status,
                                const ShardSpent& spent) {
  protocol::ShardsReturned returned;
  returned.items.push_back(
      {lease, stream, shard, OutcomeOf(SubjectTable().Settle(status)), spent, spent.stages});
  // When not connected, the scheduler learns from the next registration that the lease is not held.
  const Status sent = session_->Tell(returned);
  if (!sent.ok()) LogDebug(StrCat("return shard: ", MessageOf(sent)));
}

/// A failure on a GPU that no longer accepts calls is not reported: the worker's death is enough,
/// and its agent starts another one. Nothing is destroyed, since that would call the GPU.
void WorkerSession::EndIfGpuIsLost() {
  if (options_.delivery.gpu_uuid.empty()) return;
  const Status answers = memory::GpuAnswers(options_.delivery.gpu_uuid);
  if (answers.ok()) return;
  LogError(StrCat(Describe(answers), "; this worker ends, the next one starts afresh on the GPU"));
  std::_Exit(kExitFailed);
}

void WorkerSession::Drain() {
  if (std::exchange(draining_, true)) return;
  LogInfo(StrCat("draining, ", held_.size(), " leases to finish"));
  heard_at_ms_ = loop_.NowMs();
  loop_.Every(kRetryMs, [this] { LeaveWithoutScheduler(); });
  const auto no_more_leases = [this] {
    leases_end_ = true;
    StopWhenEmpty();
  };
  if (!session_->connected()) return no_more_leases();
  session_->Request(protocol::Drain{}, kDrainAnswerMs,
                    [no_more_leases](const StatusOr<protocol::Body>&) { no_more_leases(); });
}

/// While draining, without a scheduler that is heard: what waits for it alone is given up, for a
/// scheduler that comes back leases it again. Tasks and shards that run go on.
void WorkerSession::LeaveWithoutScheduler() {
  if (loop_.NowMs() - heard_at_ms_ < kDrainAnswerMs) return;
  std::vector<LeaseNumber> waiting;
  for (const auto& [number, held] : held_) {
    if (held.finished) waiting.push_back(number);
  }
  for (const auto& [id, stream] : streams_) {
    for (const protocol::ShardLease& shard : stream.waiting) waiting.push_back(shard.lease);
  }
  if (waiting.empty()) return;
  LogWarning(StrCat("no scheduler takes the outcome of ", waiting.size(), " leases"));
  for (const LeaseNumber& lease : waiting) Revoke(lease);
}

void WorkerSession::StopWhenEmpty() {
  if (draining_ && leases_end_ && held_.empty()) loop_.Stop();
}

}  // namespace patchbay::workers
