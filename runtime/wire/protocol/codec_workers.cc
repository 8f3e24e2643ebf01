// Messages of agents and workers.
#include "runtime/wire/protocol/codec_parts.h"

namespace patchbay::protocol::codec {

void Write(Writing&, const Gpu& m, wire::Gpu::Builder b) {
  b.setUuid(AsText(m.uuid));
  b.setName(AsText(m.name));
  b.setMemoryBytes(m.memory_bytes);
}
void Read(Reading& in, wire::Gpu::Reader r, Gpu& m) {
  Read(in, r.getUuid(), m.uuid);
  Read(in, r.getName(), m.name);
  m.memory_bytes = r.getMemoryBytes();
}

void Write(Writing& out, const RegisterAgent& m, wire::RegisterAgent::Builder b) {
  b.setNode(AsText(m.node));
  b.setHostIdentity(AsText(m.host_identity));
  b.setCpus(m.cpus);
  b.setMemoryBytes(m.memory_bytes);
  WriteStructs(out, m.gpus, [&](unsigned n) { return b.initGpus(n); });
  b.setAgentIncarnation(m.agent_incarnation);
  b.setHostName(AsText(m.host_name));
}
void Read(Reading& in, wire::RegisterAgent::Reader r, RegisterAgent& m) {
  Read(in, r.getNode(), m.node);
  Read(in, r.getHostIdentity(), m.host_identity);
  m.cpus = r.getCpus();
  m.memory_bytes = r.getMemoryBytes();
  ReadEach(in, r.getGpus(), m.gpus);
  m.agent_incarnation = r.getAgentIncarnation();
  Read(in, r.getHostName(), m.host_name);
}

void Write(Writing&, const AgentRegistered& m, wire::AgentRegistered::Builder b) {
  b.setSchedulerIncarnation(m.scheduler_incarnation);
  b.setHeartbeatMs(m.heartbeat_ms);
}
void Read(Reading&, wire::AgentRegistered::Reader r, AgentRegistered& m) {
  m.scheduler_incarnation = r.getSchedulerIncarnation();
  m.heartbeat_ms = r.getHeartbeatMs();
}

void Write(Writing& out, const HeldLease& m, wire::HeldLease::Builder b) {
  Write(out, m.lease, b.initLease());
  if (m.is_shard) {
    auto shard = b.initShard();
    shard.setStream(m.stream);
    Write(out, m.shard, shard.initId());
  } else {
    Write(out, m.task, b.initTask());
  }
}
void Read(Reading& in, wire::HeldLease::Reader r, HeldLease& m) {
  Read(in, r.getLease(), m.lease);
  switch (r.which()) {
    case wire::HeldLease::TASK:
      m.is_shard = false;
      Read(in, r.getTask(), m.task);
      return;
    case wire::HeldLease::SHARD:
      m.is_shard = true;
      m.stream = r.getShard().getStream();
      Read(in, r.getShard().getId(), m.shard);
      return;
  }
  in.Fail("a held lease is of an unknown kind");
}

void Write(Writing& out, const RegisterWorker& m, wire::RegisterWorker::Builder b) {
  b.setNode(AsText(m.node));
  b.setIndex(m.index);
  b.setNumerics(ToWire<wire::Numerics>(m.numerics));
  b.setAgentIncarnation(m.agent_incarnation);
  b.setWorkerIncarnation(m.worker_incarnation);
  b.setPid(m.pid);
  Write(out, m.capacity, b.initCapacity());
  WriteStructs(out, m.held, [&](unsigned n) { return b.initHeld(n); });
  b.setByteVersions(AsText(m.byte_versions));
  b.setHostIdentity(AsText(m.host_identity));
}
void Read(Reading& in, wire::RegisterWorker::Reader r, RegisterWorker& m) {
  Read(in, r.getNode(), m.node);
  m.index = r.getIndex();
  ReadEnum(in, r.getNumerics(), Numerics::kStrict, m.numerics);
  m.agent_incarnation = r.getAgentIncarnation();
  m.worker_incarnation = r.getWorkerIncarnation();
  m.pid = r.getPid();
  Read(in, r.getCapacity(), m.capacity);
  ReadEach(in, r.getHeld(), m.held);
  Read(in, r.getByteVersions(), m.byte_versions);
  Read(in, r.getHostIdentity(), m.host_identity);
}

void Write(Writing&, const WorkerRegistered& m, wire::WorkerRegistered::Builder b) {
  b.setSchedulerIncarnation(m.scheduler_incarnation);
  b.setLeaseMs(m.lease_ms);
}
void Read(Reading&, wire::WorkerRegistered::Reader r, WorkerRegistered& m) {
  m.scheduler_incarnation = r.getSchedulerIncarnation();
  m.lease_ms = r.getLeaseMs();
}

void Write(Writing& out, const TaskLease& m, wire::TaskLease::Builder b) {
  Write(out, m.lease, b.initLease());
  Write(out, m.task, b.initTask());
  b.setOp(AsText(m.op));
  b.setPayload(AsData(m.payload));
  WriteBlobs(out, m.inputs, [&](unsigned n) { return b.initInputs(n); });
  b.setManifest(AsData(m.manifest));
  b.setSubmitter(AsText(m.submitter));
  WriteTexts(out, m.read_prefixes, [&](unsigned n) { return b.initReadPrefixes(n); });
  WriteTexts(out, m.write_prefixes, [&](unsigned n) { return b.initWritePrefixes(n); });
  WriteNumbers(out, m.inputs_apart, [&](unsigned n) { return b.initInputsApart(n); });
  b.setPlanning(m.planning);
}
void Read(Reading& in, wire::TaskLease::Reader r, TaskLease& m) {
  Read(in, r.getLease(), m.lease);
  Read(in, r.getTask(), m.task);
  Read(in, r.getOp(), m.op);
  Read(in, r.getPayload(), m.payload);
  ReadEach(in, r.getInputs(), m.inputs);
  Read(in, r.getManifest(), m.manifest);
  Read(in, r.getSubmitter(), m.submitter);
  ReadEach(in, r.getReadPrefixes(), m.read_prefixes);
  ReadEach(in, r.getWritePrefixes(), m.write_prefixes);
  ReadNumbers(in, r.getInputsApart(), m.inputs_apart);
  m.planning = r.getPlanning();
}

void Write(Writing& out, const ShardLease& m, wire::ShardLease::Builder b) {
  Write(out, m.lease, b.initLease());
  b.setStream(m.stream);
  Write(out, m.shard, b.initShard());
  b.setFirstOrdinal(m.first_ordinal);
  Write(out, m.grant, b.initGrant());
}
void Read(Reading& in, wire::ShardLease::Reader r, ShardLease& m) {
  Read(in, r.getLease(), m.lease);
  m.stream = r.getStream();
  Read(in, r.getShard(), m.shard);
  m.first_ordinal = r.getFirstOrdinal();
  Read(in, r.getGrant(), m.grant);
}

void Write(Writing& out, const LeasesGranted& m, wire::LeasesGranted::Builder b) {
  WriteStructs(out, m.tasks, [&](unsigned n) { return b.initTasks(n); });
  WriteStructs(out, m.shards, [&](unsigned n) { return b.initShards(n); });
}
void Read(Reading& in, wire::LeasesGranted::Reader r, LeasesGranted& m) {
  ReadEach(in, r.getTasks(), m.tasks);
  ReadEach(in, r.getShards(), m.shards);
}

void Write(Writing& out, const LeasesRevoked& m, wire::LeasesRevoked::Builder b) {
  WriteStructs(out, m.leases, [&](unsigned n) { return b.initLeases(n); });
}
void Read(Reading& in, wire::LeasesRevoked::Reader r, LeasesRevoked& m) {
  ReadEach(in, r.getLeases(), m.leases);
}

void Write(Writing&, const FetchStream& m, wire::FetchStream::Builder b) {
  b.setStream(m.stream);
  b.setOffset(m.offset);
}
void Read(Reading&, wire::FetchStream::Reader r, FetchStream& m) {
  m.stream = r.getStream();
  m.offset = r.getOffset();
}

void Write(Writing& out, const StreamDescribed& m, wire::StreamDescribed::Builder b) {
  b.setStream(m.stream);
  b.setPlanDigest(AsData(m.plan_digest));
  b.setPlan(AsData(m.plan));
  b.setManifest(AsData(m.manifest));
  WriteStructs(out, m.trainers, [&](unsigned n) { return b.initTrainers(n); });
  WriteTexts(out, m.read_prefixes, [&](unsigned n) { return b.initReadPrefixes(n); });
  b.setPlanBytes(m.plan_bytes);
  b.setManifestBytes(m.manifest_bytes);
  Write(out, m.geometry, b.initGeometry());
  b.setCapacity(m.capacity);
}
void Read(Reading& in, wire::StreamDescribed::Reader r, StreamDescribed& m) {
  m.stream = r.getStream();
  Read(in, r.getPlanDigest(), m.plan_digest);
  Read(in, r.getPlan(), m.plan);
  Read(in, r.getManifest(), m.manifest);
  ReadEach(in, r.getTrainers(), m.trainers);
  ReadEach(in, r.getReadPrefixes(), m.read_prefixes);
  m.plan_bytes = r.getPlanBytes();
  m.manifest_bytes = r.getManifestBytes();
  Read(in, r.getGeometry(), m.geometry);
  m.capacity = r.getCapacity();
}

void Write(Writing& out, const RenewLeases::Item& m, wire::RenewLeases::Item::Builder b) {
  Write(out, m.lease, b.initLease());
  b.setProgress(m.progress);
}
void Read(Reading& in, wire::RenewLeases::Item::Reader r, RenewLeases::Item& m) {
  Read(in, r.getLease(), m.lease);
  m.progress = r.getProgress();
}

void Write(Writing& out, const RenewLeases& m, wire::RenewLeases::Builder b) {
  WriteStructs(out, m.items, [&](unsigned n) { return b.initItems(n); });
}
void Read(Reading& in, wire::RenewLeases::Reader r, RenewLeases& m) {
  ReadEach(in, r.getItems(), m.items);
}

void Write(Writing& out, const LeasesRenewed& m, wire::LeasesRenewed::Builder b) {
  WriteStructs(out, m.unknown, [&](unsigned n) { return b.initUnknown(n); });
}
void Read(Reading& in, wire::LeasesRenewed::Reader r, LeasesRenewed& m) {
  ReadEach(in, r.getUnknown(), m.unknown);
}

void Write(Writing& out, const TasksFinished::Item& m, wire::TasksFinished::Item::Builder b) {
  Write(out, m.lease, b.initLease());
  Write(out, m.task, b.initTask());
  Write(out, m.outcome, b.initOutcome());
  b.setResult(AsData(m.result));
  WriteStructs(out, m.spawned, [&](unsigned n) { return b.initSpawned(n); });
  b.setProgressBytes(m.progress_bytes);
  b.setResultOffset(m.result_offset);
}
void Read(Reading& in, wire::TasksFinished::Item::Reader r, TasksFinished::Item& m) {
  Read(in, r.getLease(), m.lease);
  Read(in, r.getTask(), m.task);
  Read(in, r.getOutcome(), m.outcome);
  Read(in, r.getResult(), m.result);
  ReadEach(in, r.getSpawned(), m.spawned);
  m.progress_bytes = r.getProgressBytes();
  m.result_offset = r.getResultOffset();
}

void Write(Writing& out, const PutResultPart& m, wire::PutResultPart::Builder b) {
  Write(out, m.lease, b.initLease());
  Write(out, m.task, b.initTask());
  b.setOffset(m.offset);
  b.setBytes(AsData(m.bytes));
}
void Read(Reading& in, wire::PutResultPart::Reader r, PutResultPart& m) {
  Read(in, r.getLease(), m.lease);
  Read(in, r.getTask(), m.task);
  m.offset = r.getOffset();
  Read(in, r.getBytes(), m.bytes);
}

void Write(Writing&, const ResultPartKept& m, wire::ResultPartKept::Builder b) {
  b.setKeptBytes(m.kept_bytes);
}
void Read(Reading&, wire::ResultPartKept::Reader r, ResultPartKept& m) {
  m.kept_bytes = r.getKeptBytes();
}

void Write(Writing& out, const TasksFinished& m, wire::TasksFinished::Builder b) {
  WriteStructs(out, m.items, [&](unsigned n) { return b.initItems(n); });
}
void Read(Reading& in, wire::TasksFinished::Reader r, TasksFinished& m) {
  ReadEach(in, r.getItems(), m.items);
}

void Write(Writing& out, const TasksCommitted& m, wire::TasksCommitted::Builder b) {
  WriteStructs(out, m.leases, [&](unsigned n) { return b.initLeases(n); });
}
void Read(Reading& in, wire::TasksCommitted::Reader r, TasksCommitted& m) {
  ReadEach(in, r.getLeases(), m.leases);
}

void Write(Writing& out, const ShardsReturned::Item& m, wire::ShardsReturned::Item::Builder b) {
  Write(out, m.lease, b.initLease());
  b.setStream(m.stream);
  Write(out, m.shard, b.initShard());
  Write(out, m.outcome, b.initOutcome());
}
void Read(Reading& in, wire::ShardsReturned::Item::Reader r, ShardsReturned::Item& m) {
  Read(in, r.getLease(), m.lease);
  m.stream = r.getStream();
  Read(in, r.getShard(), m.shard);
  Read(in, r.getOutcome(), m.outcome);
}

void Write(Writing& out, const ShardsReturned& m, wire::ShardsReturned::Builder b) {
  WriteStructs(out, m.items, [&](unsigned n) { return b.initItems(n); });
}
void Read(Reading& in, wire::ShardsReturned::Reader r, ShardsReturned& m) {
  ReadEach(in, r.getItems(), m.items);
}

void Write(Writing&, const WorkerExited& m, wire::WorkerExited::Builder b) {
  b.setNode(AsText(m.node));
  b.setIndex(m.index);
  b.setWorkerIncarnation(m.worker_incarnation);
  b.setWaitStatus(m.wait_status);
}
void Read(Reading& in, wire::WorkerExited::Reader r, WorkerExited& m) {
  Read(in, r.getNode(), m.node);
  m.index = r.getIndex();
  m.worker_incarnation = r.getWorkerIncarnation();
  m.wait_status = r.getWaitStatus();
}

void Write(Writing&, const KillWorker& m, wire::KillWorker::Builder b) {
  b.setIndex(m.index);
  b.setWorkerIncarnation(m.worker_incarnation);
}
void Read(Reading&, wire::KillWorker::Reader r, KillWorker& m) {
  m.index = r.getIndex();
  m.worker_incarnation = r.getWorkerIncarnation();
}

void Write(Writing&, const WorkerExitSeen&, wire::WorkerExitSeen::Builder) {}
void Read(Reading&, wire::WorkerExitSeen::Reader, WorkerExitSeen&) {}
void Write(Writing&, const Drain&, wire::Drain::Builder) {}
void Read(Reading&, wire::Drain::Reader, Drain&) {}
void Write(Writing&, const Drained&, wire::Drained::Builder) {}
void Read(Reading&, wire::Drained::Reader, Drained&) {}

}  // namespace patchbay::protocol::codec
