// Messages of users: submitters and operators.
#include "runtime/wire/protocol/codec_parts.h"

namespace patchbay::protocol::codec {

void Write(Writing& out, const SubmitJob& m, wire::SubmitJob::Builder b) {
  b.setSubmissionKey(AsText(m.submission_key));
  b.setKind(AsText(m.kind));
  b.setName(AsText(m.name));
  Write(out, m.root, b.initRoot());
  b.setManifest(AsData(m.manifest));
  b.setPriority(m.priority);
  b.setWorldSize(m.world_size);
  b.setJoin(m.join);
}
void Read(Reading& in, wire::SubmitJob::Reader r, SubmitJob& m) {
  Read(in, r.getSubmissionKey(), m.submission_key);
  Read(in, r.getKind(), m.kind);
  Read(in, r.getName(), m.name);
  Read(in, r.getRoot(), m.root);
  Read(in, r.getManifest(), m.manifest);
  m.priority = r.getPriority();
  m.world_size = r.getWorldSize();
  m.join = r.getJoin();
}

void Write(Writing&, const JobSubmitted& m, wire::JobSubmitted::Builder b) { b.setJob(m.job); }
void Read(Reading&, wire::JobSubmitted::Reader r, JobSubmitted& m) { m.job = r.getJob(); }

void Write(Writing& out, const FailedTask& m, wire::FailedTask::Builder b) {
  Write(out, m.task, b.initTask());
  b.setLabel(AsText(m.label));
  Write(out, m.outcome, b.initOutcome());
}
void Read(Reading& in, wire::FailedTask::Reader r, FailedTask& m) {
  Read(in, r.getTask(), m.task);
  Read(in, r.getLabel(), m.label);
  Read(in, r.getOutcome(), m.outcome);
}

void Write(Writing& out, const JobRow& m, wire::JobRow::Builder b) {
  b.setJob(m.job);
  b.setKind(AsText(m.kind));
  b.setName(AsText(m.name));
  b.setSubmitter(AsText(m.submitter));
  b.setState(ToWire<wire::JobState>(m.state));
  b.setPriority(m.priority);
  b.setSubmittedAt(m.submitted_at);
  b.setFinishedAt(m.finished_at);
  b.setTasksTotal(m.tasks_total);
  b.setTasksDone(m.tasks_done);
  b.setTasksFailed(m.tasks_failed);
  b.setTasksRunning(m.tasks_running);
  b.setWeightTotal(m.weight_total);
  b.setWeightDone(m.weight_done);
  b.setProgressBytes(m.progress_bytes);
  WriteStructs(out, m.failed, [&](unsigned n) { return b.initFailed(n); });
  b.setWaitsFor(AsText(m.waits_for));
  b.setUnattendedMs(m.unattended_ms);
}
void Read(Reading& in, wire::JobRow::Reader r, JobRow& m) {
  m.job = r.getJob();
  Read(in, r.getKind(), m.kind);
  Read(in, r.getName(), m.name);
  Read(in, r.getSubmitter(), m.submitter);
  ReadEnum(in, r.getState(), JobState::kCancelled, m.state);
  m.priority = r.getPriority();
  m.submitted_at = r.getSubmittedAt();
  m.finished_at = r.getFinishedAt();
  m.tasks_total = r.getTasksTotal();
  m.tasks_done = r.getTasksDone();
  m.tasks_failed = r.getTasksFailed();
  m.tasks_running = r.getTasksRunning();
  m.weight_total = r.getWeightTotal();
  m.weight_done = r.getWeightDone();
  m.progress_bytes = r.getProgressBytes();
  ReadEach(in, r.getFailed(), m.failed);
  Read(in, r.getWaitsFor(), m.waits_for);
  m.unattended_ms = r.getUnattendedMs();
}

void Write(Writing& out, const DescribeJobs& m, wire::DescribeJobs::Builder b) {
  WriteNumbers(out, m.jobs, [&](unsigned n) { return b.initJobs(n); });
  b.setBefore(m.before);
}
void Read(Reading& in, wire::DescribeJobs::Reader r, DescribeJobs& m) {
  ReadNumbers(in, r.getJobs(), m.jobs);
  m.before = r.getBefore();
}

void Write(Writing& out, const JobsDescribed& m, wire::JobsDescribed::Builder b) {
  WriteStructs(out, m.jobs, [&](unsigned n) { return b.initJobs(n); });
}
void Read(Reading& in, wire::JobsDescribed::Reader r, JobsDescribed& m) {
  ReadEach(in, r.getJobs(), m.jobs);
}

void Write(Writing& out, const FetchResult& m, wire::FetchResult::Builder b) {
  Write(out, m.task, b.initTask());
  b.setOffset(m.offset);
}
void Read(Reading& in, wire::FetchResult::Reader r, FetchResult& m) {
  Read(in, r.getTask(), m.task);
  m.offset = r.getOffset();
}

void Write(Writing& out, const ResultFetched& m, wire::ResultFetched::Builder b) {
  Write(out, m.task, b.initTask());
  b.setState(ToWire<wire::TaskState>(m.state));
  b.setResult(AsData(m.result));
  b.setResultBytes(m.result_bytes);
}
void Read(Reading& in, wire::ResultFetched::Reader r, ResultFetched& m) {
  Read(in, r.getTask(), m.task);
  ReadEnum(in, r.getState(), TaskState::kQuarantined, m.state);
  Read(in, r.getResult(), m.result);
  m.result_bytes = r.getResultBytes();
}

void Write(Writing&, const CancelJob& m, wire::CancelJob::Builder b) { b.setJob(m.job); }
void Read(Reading&, wire::CancelJob::Reader r, CancelJob& m) { m.job = r.getJob(); }
void Write(Writing&, const JobCancelled&, wire::JobCancelled::Builder) {}
void Read(Reading&, wire::JobCancelled::Reader, JobCancelled&) {}

void Write(Writing&, const RetryJob& m, wire::RetryJob::Builder b) { b.setJob(m.job); }
void Read(Reading&, wire::RetryJob::Reader r, RetryJob& m) { m.job = r.getJob(); }
void Write(Writing&, const JobRetried& m, wire::JobRetried::Builder b) { b.setTasks(m.tasks); }
void Read(Reading&, wire::JobRetried::Reader r, JobRetried& m) { m.tasks = r.getTasks(); }

void Write(Writing&, const FetchLogs& m, wire::FetchLogs::Builder b) {
  b.setJob(m.job);
  b.setAfter(m.after);
}
void Read(Reading&, wire::FetchLogs::Reader r, FetchLogs& m) {
  m.job = r.getJob();
  m.after = r.getAfter();
}

void Write(Writing&, const LogsFetched::Line& m, wire::LogsFetched::Line::Builder b) {
  b.setSequence(m.sequence);
  b.setAt(m.at);
  b.setText(AsText(m.text));
}
void Read(Reading& in, wire::LogsFetched::Line::Reader r, LogsFetched::Line& m) {
  m.sequence = r.getSequence();
  m.at = r.getAt();
  Read(in, r.getText(), m.text);
}

void Write(Writing& out, const LogsFetched& m, wire::LogsFetched::Builder b) {
  WriteStructs(out, m.lines, [&](unsigned n) { return b.initLines(n); });
}
void Read(Reading& in, wire::LogsFetched::Reader r, LogsFetched& m) {
  ReadEach(in, r.getLines(), m.lines);
}

void Write(Writing& out, const NodeRow& m, wire::NodeRow::Builder b) {
  b.setNode(AsText(m.node));
  b.setState(AsText(m.state));
  b.setCpus(m.cpus);
  b.setWorkers(m.workers);
  WriteStructs(out, m.gpus, [&](unsigned n) { return b.initGpus(n); });
}
void Read(Reading& in, wire::NodeRow::Reader r, NodeRow& m) {
  Read(in, r.getNode(), m.node);
  Read(in, r.getState(), m.state);
  m.cpus = r.getCpus();
  m.workers = r.getWorkers();
  ReadEach(in, r.getGpus(), m.gpus);
}

void Write(Writing&, const WorkerRow& m, wire::WorkerRow::Builder b) {
  b.setNode(AsText(m.node));
  b.setIndex(m.index);
  b.setLeases(m.leases);
  b.setPid(m.pid);
  b.setState(AsText(m.state));
  b.setTasksDone(m.tasks_done);
  b.setShardsDone(m.shards_done);
}
void Read(Reading& in, wire::WorkerRow::Reader r, WorkerRow& m) {
  Read(in, r.getNode(), m.node);
  m.index = r.getIndex();
  m.leases = r.getLeases();
  m.pid = r.getPid();
  Read(in, r.getState(), m.state);
  m.tasks_done = r.getTasksDone();
  m.shards_done = r.getShardsDone();
}

void Write(Writing& out, const ClusterDescribed& m, wire::ClusterDescribed::Builder b) {
  WriteStructs(out, m.nodes, [&](unsigned n) { return b.initNodes(n); });
  WriteStructs(out, m.workers, [&](unsigned n) { return b.initWorkers(n); });
  WriteStructs(out, m.jobs, [&](unsigned n) { return b.initJobs(n); });
  WriteStructs(out, m.peers_dropped, [&](unsigned n) { return b.initPeersDropped(n); });
}
void Read(Reading& in, wire::ClusterDescribed::Reader r, ClusterDescribed& m) {
  ReadEach(in, r.getNodes(), m.nodes);
  ReadEach(in, r.getWorkers(), m.workers);
  ReadEach(in, r.getJobs(), m.jobs);
  ReadEach(in, r.getPeersDropped(), m.peers_dropped);
}

void Write(Writing&, const DescribeCluster&, wire::DescribeCluster::Builder) {}
void Read(Reading&, wire::DescribeCluster::Reader, DescribeCluster&) {}
void Write(Writing&, const ReloadKeys&, wire::ReloadKeys::Builder) {}
void Read(Reading&, wire::ReloadKeys::Reader, ReloadKeys&) {}
void Write(Writing&, const KeysReloaded&, wire::KeysReloaded::Builder) {}
void Read(Reading&, wire::KeysReloaded::Reader, KeysReloaded&) {}
void Write(Writing&, const ShutDown&, wire::ShutDown::Builder) {}
void Read(Reading&, wire::ShutDown::Reader, ShutDown&) {}
void Write(Writing&, const ShuttingDown&, wire::ShuttingDown::Builder) {}
void Read(Reading&, wire::ShuttingDown::Reader, ShuttingDown&) {}

}  // namespace patchbay::protocol::codec
