#include "scheduler/core/job_handler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/core/job_access.h"
#include "scheduler/policy/join_terms.h"
#include "scheduler/policy/limits.h"
#include "scheduler/policy/open_bytes.h"

namespace patchbay::scheduler {
namespace {

constexpr TimeMs kTellEveryMs = 1'000;

/// The jobs of a user are ordered by it.
Status CheckPriority(std::string_view doing, const PeerIdentity& identity, std::int32_t priority) {
  if (priority < -kMostPriority || priority > kMostPriority) {
    return InvalidArgument(doing, ": the priority ", priority, " is not in -", kMostPriority, "..",
                           kMostPriority);
  }
  if (priority > 0 && identity.role != Role::kOperator) {
    return PermissionDenied(doing, ": priority ", priority,
                            ": above 0 is for operators: ask for 0 or less");
  }
  return absl::OkStatus();
}

Status CheckSubmit(const PeerIdentity& identity, const protocol::SubmitJob& message) {
  const auto refuse = [&](std::string_view cause) {
    return InvalidArgument("submit job: ", cause);
  };
  if (identity.role == Role::kTrainer && message.kind != "stream") {
    return PermissionDenied("submit job: a trainer's key may submit stream jobs only");
  }
  if (message.submission_key.empty() || message.submission_key.size() > kMaxNameBytes) {
    return refuse("the submission key is empty or too long");
  }
  if (message.kind.empty() || message.kind.size() > kMaxNameBytes) {
    return refuse("the kind is empty or too long");
  }
  if (message.name.size() > kMaxNameBytes) return refuse("the name is too long");
  if (message.manifest.size() > kMaxManifestBytes) return refuse("the manifest is too long");
  if (message.join && (message.kind != "stream" || message.name.empty())) {
    return refuse("only stream jobs with a name can be joined");
  }
  if (message.world_size < 1 || message.world_size > kMaxWorldSize) {
    return refuse("the world size is out of range");
  }
  PB_RETURN_IF_ERROR(CheckPriority("submit job", identity, message.priority));
  return JobTable::CheckSpec(message.root, nullptr, 0);
}

/// Time since a trainer of the stream was last heard; 0 while an attached trainer is not silent.
TimeMs UnattendedMs(const Stream& stream, TimeMs now) {
  TimeMs heard = stream.trainers.empty() ? stream.empty_since : 0;
  for (const auto& [rank, trainer] : stream.trainers) {
    if (trainer.state == TrainerState::kAttached) return 0;
    heard = std::max(heard, trainer.last_seen);
  }
  return std::max<TimeMs>(now - heard, 1);
}

std::string_view NameOf(WorkerState state) {
  switch (state) {
    case WorkerState::kUp:
      return "idle";
    case WorkerState::kDraining:
      return "draining";
    default:
      return "suspect";
  }
}

/// Names failures as long as a message has room; the rows still have their number.
void CutFailures(std::vector<protocol::JobRow>& rows) {
  std::size_t bytes = 0;
  for (protocol::JobRow& row : rows) {
    const auto fits = [&](const protocol::FailedTask& task) {
      bytes += sizeof(task) + task.label.size() + BytesOf(task.outcome);
      return bytes <= kMaxFailedDescribedBytes;
    };
    row.failed.erase(std::find_if_not(row.failed.begin(), row.failed.end(), fits),
                     row.failed.end());
  }
}

}  // namespace

void JobHandler::On(const Request& request, protocol::SubmitJob&& message) {
  const PeerIdentity& identity = *request.identity;
  if (const Status fits = CheckSubmit(identity, message); !fits.ok()) {
    return barrier_.Refuse(request, fits);
  }
  JobId id = table_.FindSubmission(identity.key_name, message.submission_key);
  if (id == 0 && message.join) {
    const Job* open = table_.FindOpenStream(identity.key_name, message.name);
    if (open != nullptr) {
      const Status same = CheckJoin(
          message, {open->id, open->tasks[0].spec.payload, open->manifest, open->world_size});
      if (!same.ok()) return barrier_.Refuse(request, same);
      id = open->id;
    }
  }
  if (id == 0) {
    const std::uint64_t bytes = sizeof(Job) + message.manifest.size() + TaskBytes(message.root);
    if (const Status fits = CheckBytes("submit job", bytes); !fits.ok()) {
      return barrier_.Refuse(request, fits);
    }
    // Without a policy every key is of the default team.
    const std::string team = table_.teams().at == 0 ? "" : identity.team;
    const bool is_stream = message.kind == "stream";
    Status fits = causes_.CheckNeed(message.root.resources);
    if (fits.ok()) {
      fits = CheckTeam(
          "submit job", team,
          {is_stream ? message.world_size : 0, message.waits, message.root.resources.gpus});
    }
    if (!fits.ok()) return barrier_.Refuse(request, fits);
    id = table_.next_job();
    barrier_.Emit(SubmitRecord{id, identity.key_name, std::move(message.submission_key),
                               std::move(message.kind), std::move(message.name),
                               std::move(message.root), std::move(message.manifest),
                               message.priority, message.world_size, identity.read_prefixes,
                               identity.write_prefixes, team});
    if (is_stream) places_.Wait(*table_.Find(id));
    logs_.Add(id, "job submitted");
  }
  barrier_.Answer(request, protocol::JobSubmitted{id});
}

Status JobHandler::CheckBytes(std::string_view doing, std::uint64_t bytes) const {
  if (table_.open_jobs() >= kMaxOpenJobs) {
    return ResourceExhausted(doing, ": ", kMaxOpenJobs,
                             " jobs are open: wait until some of them have ended, or cancel them");
  }
  return CheckOpenBytes(doing, table_.open_bytes() + book_.part_bytes(), bytes,
                        options_.open_bytes_max / kSubmitShare);
}

Status JobHandler::CheckTeam(std::string_view doing, const std::string& team,
                             const Entry& entry) const {
  const model::TeamRules* rules = table_.teams().policy.Find(team);
  const std::string place = StrCat(doing, ": team ", team.empty() ? model::kDefaultTeam : team);
  if (rules == nullptr) {
    return FailedPrecondition(place,
                              ": the policy of teams has no such team: ask the operator for one");
  }
  const model::TeamMost& most = rules->most;
  if (most.cpu_millis == 0u) return FailedPrecondition(place, ": it may have 0 cores");
  if (most.gpus == 0u && entry.gpus != 0) return FailedPrecondition(place, ": it may have 0 GPUs");
  if (most.jobs == 0u) return FailedPrecondition(place, ": it may have 0 jobs");
  if (most.streams && entry.ranks > *most.streams) {
    return FailedPrecondition(place, ": it may have ", *most.streams,
                              " ranks of streams, and the stream has ", entry.ranks);
  }
  if (most.jobs && table_.OpenJobsOf(team) >= *most.jobs) {
    return ResourceExhausted(place, ": it has ", *most.jobs,
                             " open jobs, as many as it may: wait until one has ended");
  }
  if (entry.ranks != 0 && !entry.waits && !places_.HasRoom(team, entry.ranks)) {
    return ResourceExhausted(place, ": it has as many streams as it may, with at most ",
                             *most.streams, " ranks: wait until one has ended");
  }
  return absl::OkStatus();
}

protocol::JobRow JobHandler::Row(const Job& job, std::size_t failed_max, bool with_cause) {
  protocol::JobRow row;
  row.job = job.id;
  row.kind = job.kind;
  row.name = job.name;
  row.submitter = job.submitter;
  if (table_.teams().at != 0) row.team = job.team.empty() ? model::kDefaultTeam : job.team;
  row.state = job.waits_for_place ? JobState::kQueued : job.state;
  row.priority = job.priority;
  row.on_hold = job.on_hold;
  row.submitted_at = job.submitted_at;
  row.finished_at = job.finished_at;
  row.tasks_total = job.CountedTasks();
  row.tasks_done = job.tasks_done;
  row.tasks_failed = job.tasks_failed + job.tasks_cancelled;
  row.tasks_running = job.tasks_running;
  row.weight_total = job.weight_total;
  row.weight_done = job.weight_done;
  row.progress_bytes = job.progress_bytes;
  if (job.stream_outcome.code != 0)
    row.failed.push_back({{job.id, 0}, "stream", job.stream_outcome});
  const Stream* const stream = streams_.Find(job.id);
  if (stream != nullptr) TakeStreamRow(*stream, row);
  const CoreShares::Share share = shares_.Of(job, stream);
  row.wanted_cpu_millis = share.wanted;
  row.held_cpu_millis = share.held;
  if (with_cause) row.cause = causes_.CodeOf(job);
  const bool has_units = stream != nullptr && !stream->geometry.units.empty();
  if (has_units || job.units.count != 0) {
    row.weight_done = job.units.count;
    row.weight_total = has_units ? stream->geometry.units.units() : job.units.count;
  }
  for (const auto& [unit, outcome] : job.units.failed) {
    if (row.failed.size() >= failed_max) break;
    row.failed.push_back(
        {{job.id, 0}, StrCat("unit ", unit), outcome, static_cast<std::uint32_t>(unit + 1)});
  }
  for (const auto& [index, outcome] : job.failures) {
    if (row.failed.size() >= failed_max) break;
    const protocol::TaskSpec& spec = job.tasks[index].spec;
    row.failed.push_back({{job.id, index}, spec.label, outcome, spec.group});
  }
  return row;
}

void JobHandler::TakeStreamRow(const Stream& stream, protocol::JobRow& row) const {
  row.waits_for = stream.waits_for;
  row.unattended_ms = static_cast<std::uint64_t>(UnattendedMs(stream, event_.now));
  row.patches_total = stream.PatchesTotal();
  row.patches_made = std::min(stream.patches_made, row.patches_total);
  row.stalled_ms = static_cast<std::uint64_t>(stream.stalled_ms);
  row.course = stream.past.Course(event_.now, stream.patches_made, stream.stalled_ms);
}

std::vector<protocol::JobRow> JobHandler::RecentRows(const PeerIdentity& identity, JobId before,
                                                     std::size_t most) {
  std::vector<protocol::JobRow> rows;
  const auto& jobs = table_.jobs();
  auto it = std::make_reverse_iterator(before == 0 ? jobs.end() : jobs.lower_bound(before));
  for (; it != jobs.rend() && rows.size() < most; ++it) {
    const bool with_cause = rows.size() < kMaxCausesAsked;
    if (MaySee(identity, it->second)) {
      rows.push_back(Row(it->second, kMaxFailedDescribed, with_cause));
    }
  }
  CutFailures(rows);
  return rows;
}

void JobHandler::On(const Request& request, protocol::DescribeJobs&& message) {
  protocol::JobsDescribed described;
  if (message.jobs.empty()) {
    described.jobs = RecentRows(*request.identity, message.before, kMaxJobsDescribed);
  } else {
    const std::size_t failed = message.jobs.size() == 1 ? kMaxFailedListed : kMaxFailedDescribed;
    for (const JobId id : message.jobs) {
      if (described.jobs.size() >= kMaxJobsDescribed) break;
      const Job* job = VisibleJob(barrier_, request, id);
      if (job == nullptr) return;
      described.jobs.push_back(Row(*job, failed));
    }
    CutFailures(described.jobs);
  }
  barrier_.Answer(request, std::move(described));
}

void JobHandler::On(const Request& request, protocol::FetchResult&& message) {
  const Job* job = VisibleJob(barrier_, request, message.task.job);
  if (job == nullptr) return;
  if (message.task.index == protocol::kLastTask) {
    message.task.index = static_cast<std::uint32_t>(job->tasks.size() - 1);
  }
  if (message.task.index >= job->tasks.size()) {
    return barrier_.Refuse(request,
                           NotFound("fetch result: ", message.task.ToString(), ": no such task"));
  }
  const Task& task = job->tasks[message.task.index];
  if (task.result_dropped) {
    return barrier_.Refuse(request, NotFound("fetch result: ", message.task.ToString(),
                                             ": the result is no longer kept"));
  }
  barrier_.Answer(request, PieceOf(message.task, task, message.offset));
}

void JobHandler::On(const Request& request, protocol::CancelJob&& message) {
  Job* job = VisibleJob(barrier_, request, message.job);
  if (job == nullptr) return;
  if (!IsEnded(job->state)) {
    logs_.Add(message.job, "job cancelled");
    barrier_.Emit(CancelRecord{message.job});
  }
  if (job->state != JobState::kCancelled) {
    return barrier_.Refuse(request, FailedPrecondition("cancel job: ", message.job,
                                                       ": it has ended: ", NameOf(job->state)));
  }
  barrier_.Answer(request, protocol::JobCancelled{});
}

void JobHandler::On(const Request& request, protocol::RetryJob&& message) {
  Job* job = VisibleJob(barrier_, request, message.job);
  if (job == nullptr) return;
  const bool asked_again = job->last_retry.sender == request.sender_incarnation &&
                           job->last_retry.request == request.request_id;
  if (!asked_again && job->IsStream() && job->state == JobState::kCancelled) {
    return barrier_.Refuse(
        request, FailedPrecondition("retry job: ", message.job,
                                    ": a cancelled stream has no trainer: stream it again"));
  }
  const bool ended_stream =
      job->IsStream() && (job->state == JobState::kFailed || job->state == JobState::kPartlyFailed);
  const bool any = job->tasks_failed + job->tasks_cancelled != 0 || ended_stream;
  if (!asked_again && !any) return barrier_.Answer(request, protocol::JobRetried{0});
  const std::uint64_t reopened = IsEnded(job->state) ? job->size_bytes : 0;
  if (!asked_again) {
    const std::string doing = StrCat("retry job: ", message.job);
    Status fits = reopened == 0 ? absl::OkStatus() : CheckBytes(doing, reopened);
    if (fits.ok() && reopened != 0) {
      fits = CheckTeam(doing, job->team, {job->IsStream() ? job->world_size : 0});
    }
    if (!fits.ok()) return barrier_.Refuse(request, fits);
    barrier_.Emit(RetryRecord{message.job, request.sender_incarnation, request.request_id,
                              book_.LastNumber()});
    if (reopened != 0 && job->IsStream()) places_.Wait(*job);
    logs_.Add(message.job, StrCat("job retried: ", job->last_retry.tasks, " tasks"));
    if (ended_stream && job->PlanIsReady()) streams_.Open(message.job).IgnoreError();
  }
  barrier_.Answer(request, protocol::JobRetried{job->last_retry.tasks});
}

void JobHandler::On(const Request& request, protocol::ChangeJob&& message) {
  Job* job = VisibleJob(barrier_, request, message.job);
  if (job == nullptr) return;
  const bool forgets = message.change == protocol::JobChange::kForget;
  if (IsEnded(job->state) != forgets) {
    const char* const why = forgets ? ": it has not ended: " : ": it has ended: ";
    return barrier_.Refuse(
        request, FailedPrecondition("change job: ", message.job, why, NameOf(job->state)));
  }
  if (forgets) {
    barrier_.Emit(ForgetJobRecord{job->id});
    return barrier_.Answer(request, protocol::JobChanged{});
  }
  ChangeJobRecord changed{job->id, job->priority, job->on_hold};
  std::string said = "put on hold";
  if (message.change == protocol::JobChange::kPriority) {
    const Status fits = CheckPriority("change job", *request.identity, message.priority);
    if (!fits.ok()) return barrier_.Refuse(request, fits);
    changed.priority = message.priority;
    said = StrCat("priority set to ", message.priority);
  } else {
    changed.on_hold = message.change == protocol::JobChange::kHold;
    if (!changed.on_hold) said = "released";
  }
  if (changed.priority != job->priority || changed.on_hold != job->on_hold) {
    batch_.TakeOut(*job);
    barrier_.Emit(changed);
    batch_.PutBack(*job);
    streams_.Change(*job);
    logs_.Add(job->id, StrCat("job ", said, " by ", request.identity->key_name));
  }
  barrier_.Answer(request, protocol::JobChanged{});
}

void JobHandler::On(const Request& request, protocol::ExplainJob&& message) {
  const Job* job = VisibleJob(barrier_, request, message.job);
  if (job != nullptr) barrier_.Answer(request, causes_.Explain(*job));
}

void JobHandler::Tick() {
  if (event_.now - told_at_ < kTellEveryMs) return;
  told_at_ = event_.now;
  const auto before = std::exchange(told_, {});
  for (const auto& [id, job] : table_.jobs()) {
    const Stream* const stream = streams_.Find(id);
    if (!job.IsStream() || (stream != nullptr && !stream->waits_for.empty())) continue;
    const auto cause = causes_.Of(job);
    if (!cause.has_value()) continue;
    const auto last = before.find(id);
    const bool lasts = last != before.end() && last->second.first == cause->code;
    told_[id] = {cause->code, lasts};
    if (!lasts || last->second.second) continue;
    logs_.Add(id, StrCat("the job waits, ", cause->code, ": ", cause->held_by, "; it starts ",
                         cause->starts));
  }
}

void JobHandler::On(const Request& request, protocol::FetchLogs&& message) {
  if (VisibleJob(barrier_, request, message.job) == nullptr) return;
  barrier_.Answer(request, protocol::LogsFetched{logs_.After(message.job, message.after)});
}

std::string_view JobHandler::StateOf(const Node& node) const {
  const bool silent = node.agent == 0 || event_.now - node.last_seen >= options_.suspect_ms;
  const bool busy = std::any_of(node.workers.begin(), node.workers.end(), [&](const auto& place) {
    const Worker& worker = worker_table_.at(place.second);
    return !worker.tasks.empty() || !worker.shards.empty();
  });
  return node.draining || (node.drained && busy) ? "draining"
         : node.drained                          ? "drained"
         : silent                                ? "suspect"
                                                 : "up";
}

std::set<std::string> JobHandler::AwayNodes() const {
  std::set<std::string> away = recovery_.AwaitedNodes();
  for (const auto& [name, drained] : table_.drained_nodes()) {
    const auto node = worker_table_.nodes().find(name);
    if (node == worker_table_.nodes().end() || !node->second.registered) away.insert(name);
  }
  return away;
}

protocol::NodeRow JobHandler::RowOf(const Node& node) const {
  protocol::NodeRow row;
  row.node = node.name;
  row.state = StateOf(node);
  row.cpus = node.cpus;
  row.gpus = node.gpus;
  for (const auto& [index, id] : node.workers) {
    row.workers += worker_table_.at(id).state == WorkerState::kGone ? 0 : 1;
  }
  return row;
}

protocol::WorkerRow JobHandler::RowOf(const Worker& worker) const {
  protocol::WorkerRow row;
  row.node = worker.node;
  row.index = worker.index;
  row.pid = worker.pid;
  row.leases = static_cast<std::uint32_t>(worker.tasks.size() + worker.shards.size());
  const bool up = worker.state == WorkerState::kUp && !worker_table_.IsSuspect(worker);
  row.state = up && row.leases != 0              ? "busy"
              : up                               ? "idle"
              : worker.state == WorkerState::kUp ? "suspect"
                                                 : std::string(NameOf(worker.state));
  row.tasks_done = worker.tasks_done;
  row.shards_done = worker.shards_done;
  return row;
}

std::vector<protocol::NodeRow> JobHandler::NodeRows() const {
  std::vector<protocol::NodeRow> rows;
  for (const auto& [name, node] : worker_table_.nodes()) {
    if (node.registered) rows.push_back(RowOf(node));
  }
  for (const std::string& name : AwayNodes()) {
    protocol::NodeRow& away = rows.emplace_back();
    away.node = name;
    away.state = "away";
  }
  for (protocol::NodeRow& row : rows) {
    const auto label = table_.node_labels().find(row.node);
    if (label != table_.node_labels().end()) row.label = label->second;
    const auto drained = table_.drained_nodes().find(row.node);
    if (drained == table_.drained_nodes().end()) continue;
    row.drained_by = drained->second.by;
    row.drain_reason = drained->second.reason;
  }
  return rows;
}

protocol::ClusterDescribed JobHandler::Describe(const PeerIdentity& identity,
                                                std::size_t jobs_max) {
  const auto may_see = [&](JobId id) {
    const Job* const job = table_.Find(id);
    return job != nullptr && MaySee(identity, *job);
  };
  protocol::ClusterDescribed described;
  described.nodes = NodeRows();
  for (const Worker& worker : worker_table_.workers()) {
    if (worker.state != WorkerState::kGone) described.workers.push_back(RowOf(worker));
  }
  described.jobs = RecentRows(identity, 0, jobs_max);
  const JobId oldest = described.jobs.empty() ? 0 : described.jobs.back().job;
  const auto& open = streams_.open();
  for (auto it = std::make_reverse_iterator(open.lower_bound(oldest)); it != open.rend(); ++it) {
    if (may_see(it->first)) described.jobs.push_back(Row(*table_.Find(it->first), 0));
  }
  for (const auto& [key, report] : streams_.drop_reports().reports()) {
    if (may_see(key.first)) described.peers_dropped.push_back(report);
  }
  const protocol::PeersDropped& own = streams_.drop_reports().own();
  if (identity.role == Role::kOperator && !own.items.empty()) {
    described.peers_dropped.push_back(own);
  }
  described.failures = logs_.Failures(event_.wall - kFailuresShownSeconds, may_see);
  described.state_free_bytes = state_free_bytes_;
  return described;
}

void JobHandler::On(const Request& request, protocol::DescribeCluster&&) {
  barrier_.Answer(request, Describe(*request.identity, kMaxJobsDescribed));
}

void JobHandler::On(const Request& request, protocol::AdmitBrowser&& message) {
  event_.out->host_requests.push_back({HostRequest::Kind::kAdmitBrowser, request.peer,
                                       request.request_id, std::move(message.code),
                                       *request.identity});
}

void JobHandler::On(const Request& request, protocol::ReloadKeys&&) {
  event_.out->host_requests.push_back(
      {HostRequest::Kind::kReloadKeys, request.peer, request.request_id});
}

void JobHandler::On(const Request& request, protocol::ShutDown&&) {
  event_.out->host_requests.push_back(
      {HostRequest::Kind::kShutDown, request.peer, request.request_id});
}

}  // namespace patchbay::scheduler
