// What people and their tools ask for: jobs, results, logs, the state of the cluster.
#include <algorithm>
#include <utility>

#include "scheduler/core/machine.h"

namespace patchbay::scheduler {
namespace {

Status CheckSubmit(const PeerIdentity& identity, const protocol::SubmitJob& message) {
  const auto refuse = [&](std::string_view cause) {
    return absl::InvalidArgumentError(StrCat("submit job: ", cause));
  };
  if (identity.role == Role::kTrainer && message.kind != "stream") {
    return absl::PermissionDeniedError("submit job: a trainer's key may submit stream jobs only");
  }
  if (message.submission_key.empty() || message.submission_key.size() > kMaxNameBytes) {
    return refuse("the submission key is empty or too long");
  }
  if (message.kind.empty() || message.kind.size() > kMaxNameBytes) {
    return refuse("the kind is empty or too long");
  }
  if (message.name.size() > kMaxNameBytes) return refuse("the name is too long");
  if (message.manifest.size() > kMaxManifestBytes) return refuse("the manifest is too long");
  if (message.world_size < 1 || message.world_size > kMaxWorldSize) {
    return refuse("the world size is out of range");
  }
  return JobTable::CheckSpec(message.root, nullptr, 0);
}

bool MaySee(const PeerIdentity& identity, const Job& job) {
  return identity.role == Role::kOperator || identity.key_name == job.submitter;
}

/// Of a job that has ended, as commands show it.
std::string_view NameOf(protocol::JobState state) {
  switch (state) {
    case protocol::JobState::kDone:
      return "done";
    case protocol::JobState::kCancelled:
      return "cancelled";
    case protocol::JobState::kPartlyFailed:
      return "partly failed";
    default:
      return "failed";
  }
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

}  // namespace

/// A connection that is not (or no longer) registered is told incarnation 0, which no scheduler
/// has: it registers or attaches again.
void Core::Machine::On(const Request& request, protocol::Heartbeat&&) {
  const Peer& peer = peers.at(request.peer);
  bool bound = false;
  if (!peer.agent_of.empty() && nodes.at(peer.agent_of).agent == request.peer) {
    nodes.at(peer.agent_of).last_seen = now;
    bound = nodes.at(peer.agent_of).registered;
  }
  if (peer.worker != kNoWorker && workers[peer.worker].peer == request.peer) {
    workers[peer.worker].last_seen = now;
    workers[peer.worker].sends_heartbeats = true;
    bound = bound || workers[peer.worker].state != WorkerState::kGone;
  }
  Trainer* trainer = FindTrainer(peer.trainer);
  if (trainer != nullptr && trainer->peer == request.peer &&
      trainer->state != TrainerState::kForgotten) {
    trainer->last_seen = now;
    trainer->state = TrainerState::kAttached;
    shards_changed = true;
    bound = !trainer->behind;
  }
  // Says nothing of the journal but the incarnation, so it waits for that alone.
  if (durable < start_sequence) return;
  Send(request.peer, request.request_id, protocol::HeartbeatSeen{bound ? table.incarnation() : 0});
}

Job* Core::Machine::VisibleJob(const Request& request, JobId id) {
  Job* job = table.Find(id);
  if (job != nullptr && MaySee(*request.identity, *job)) return job;
  Refuse(request, absl::NotFoundError(StrCat("find job: ", id, ": there is no such job")));
  return nullptr;
}

void Core::Machine::On(const Request& request, protocol::SubmitJob&& message) {
  const PeerIdentity& identity = *request.identity;
  if (const Status fits = CheckSubmit(identity, message); !fits.ok()) {
    return Refuse(request, fits);
  }
  JobId id = table.FindSubmission(identity.key_name, message.submission_key);
  if (id == 0) {
    if (table.open_jobs() >= kMaxOpenJobs) {
      return Refuse(request, absl::ResourceExhaustedError("submit job: too many jobs are open"));
    }
    id = table.next_job();
    Emit(SubmitRecord{id, identity.key_name, std::move(message.submission_key),
                      std::move(message.kind), std::move(message.name), std::move(message.root),
                      std::move(message.manifest), message.priority, message.world_size,
                      identity.read_prefixes, identity.write_prefixes});
    LogLine(id, "job submitted");
  }
  Answer(request, protocol::JobSubmitted{id});
}

protocol::JobRow Core::Machine::Row(const Job& job, std::size_t failed_max) const {
  protocol::JobRow row;
  row.job = job.id;
  row.kind = job.kind;
  row.name = job.name;
  row.submitter = job.submitter;
  row.state = job.state;
  row.priority = job.priority;
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
  for (const auto& [index, outcome] : job.failures) {
    if (row.failed.size() >= failed_max) break;
    row.failed.push_back({{job.id, index}, job.tasks[index].spec.label, outcome});
  }
  return row;
}

std::vector<protocol::JobRow> Core::Machine::RecentRows(const PeerIdentity& identity) const {
  std::vector<protocol::JobRow> rows;
  const auto& jobs = table.jobs();
  for (auto it = jobs.rbegin(); it != jobs.rend() && rows.size() < kMaxJobsDescribed; ++it) {
    if (MaySee(identity, it->second)) rows.push_back(Row(it->second, kMaxFailedDescribed));
  }
  return rows;
}

void Core::Machine::On(const Request& request, protocol::DescribeJobs&& message) {
  protocol::JobsDescribed described;
  if (message.jobs.empty()) {
    described.jobs = RecentRows(*request.identity);
  } else {
    const std::size_t failed = message.jobs.size() == 1 ? kMaxFailedListed : kMaxFailedDescribed;
    for (const JobId id : message.jobs) {
      if (described.jobs.size() >= kMaxJobsDescribed) break;
      const Job* job = VisibleJob(request, id);
      if (job == nullptr) return;
      described.jobs.push_back(Row(*job, failed));
    }
  }
  Answer(request, std::move(described));
}

void Core::Machine::On(const Request& request, protocol::FetchResult&& message) {
  const Job* job = VisibleJob(request, message.task.job);
  if (job == nullptr) return;
  if (message.task.index >= job->tasks.size()) {
    return Refuse(request, absl::NotFoundError(StrCat("fetch result: ", message.task.ToString(),
                                                      ": there is no such task")));
  }
  const Task& task = job->tasks[message.task.index];
  if (task.result_dropped) {
    return Refuse(request, absl::NotFoundError(StrCat("fetch result: ", message.task.ToString(),
                                                      ": the result is no longer kept")));
  }
  const std::size_t from = std::min<std::uint64_t>(message.offset, task.result.size());
  Answer(request, protocol::ResultFetched{message.task, task.state,
                                          task.result.substr(from, protocol::kMaxInlineResultBytes),
                                          task.result.size()});
}

void Core::Machine::On(const Request& request, protocol::CancelJob&& message) {
  Job* job = VisibleJob(request, message.job);
  if (job == nullptr) return;
  if (!IsEnded(job->state)) {
    LogLine(message.job, "job cancelled");
    Emit(CancelRecord{message.job});
  }
  if (job->state != JobState::kCancelled) {
    return Refuse(request,
                  absl::FailedPreconditionError(
                      StrCat("cancel job: ", message.job, ": it has ended: ", NameOf(job->state))));
  }
  Answer(request, protocol::JobCancelled{});
}

void Core::Machine::On(const Request& request, protocol::RetryJob&& message) {
  Job* job = VisibleJob(request, message.job);
  if (job == nullptr) return;
  const bool asked_again = job->last_retry.sender == request.sender_incarnation &&
                           job->last_retry.request == request.request_id;
  if (!asked_again && job->IsStream() && job->state == JobState::kCancelled) {
    return Refuse(request, absl::FailedPreconditionError(
                               StrCat("retry job: ", message.job,
                                      ": a cancelled stream has no trainer: stream it again")));
  }
  const bool ended_stream = job->IsStream() && job->state == JobState::kFailed;
  const bool any = job->tasks_failed + job->tasks_cancelled != 0 || ended_stream;
  if (!asked_again && !any) return Answer(request, protocol::JobRetried{0});
  if (!asked_again) {
    Emit(RetryRecord{message.job, request.sender_incarnation, request.request_id,
                     LeaseNumber{table.incarnation(), lease_counter}});
    LogLine(message.job, StrCat("job retried: ", job->last_retry.tasks, " tasks"));
    if (ended_stream && job->tasks[0].state == TaskState::kDone) {
      OpenStream(message.job).IgnoreError();
    }
  }
  Answer(request, protocol::JobRetried{job->last_retry.tasks});
}

void Core::Machine::On(const Request& request, protocol::FetchLogs&& message) {
  if (VisibleJob(request, message.job) == nullptr) return;
  protocol::LogsFetched fetched;
  const auto log = logs.find(message.job);
  if (log != logs.end()) {
    for (const auto& line : log->second.lines) {
      if (line.sequence > message.after) fetched.lines.push_back(line);
    }
  }
  Answer(request, std::move(fetched));
}

void Core::Machine::On(const Request& request, protocol::DescribeCluster&&) {
  protocol::ClusterDescribed described;
  for (const auto& [name, node] : nodes) {
    if (!node.registered) continue;
    protocol::NodeRow row;
    row.node = name;
    const bool silent = node.agent == 0 || now - node.last_seen >= options.suspect_ms;
    row.state = node.draining ? "draining" : silent ? "suspect" : "up";
    row.cpus = node.cpus;
    row.gpus = node.gpus;
    for (const auto& [index, id] : node.workers) {
      row.workers += workers[id].state == WorkerState::kGone ? 0 : 1;
    }
    described.nodes.push_back(std::move(row));
  }
  for (const Worker& worker : workers) {
    if (worker.state == WorkerState::kGone) continue;
    protocol::WorkerRow row;
    row.node = worker.node;
    row.index = worker.index;
    row.pid = worker.pid;
    row.leases = static_cast<std::uint32_t>(worker.tasks.size() + worker.shards.size());
    const bool up = worker.state == WorkerState::kUp && !IsSuspect(worker);
    row.state = up && row.leases != 0              ? "busy"
                : up                               ? "idle"
                : worker.state == WorkerState::kUp ? "suspect"
                                                   : std::string(NameOf(worker.state));
    row.tasks_done = worker.tasks_done;
    row.shards_done = worker.shards_done;
    described.workers.push_back(std::move(row));
  }
  described.jobs = RecentRows(*request.identity);
  Answer(request, std::move(described));
}

void Core::Machine::On(const Request& request, protocol::ReloadKeys&&) {
  out->host_requests.push_back({HostRequest::Kind::kReloadKeys, request.peer, request.request_id});
}

void Core::Machine::On(const Request& request, protocol::ShutDown&&) {
  out->host_requests.push_back({HostRequest::Kind::kShutDown, request.peer, request.request_id});
}

}  // namespace patchbay::scheduler
