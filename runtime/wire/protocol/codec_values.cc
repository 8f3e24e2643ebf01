// The shared values of the protocol: lease numbers, tasks, shards, grants.
#include "runtime/wire/protocol/codec_parts.h"

namespace patchbay::protocol::codec {

void Read(Reading& in, capnp::Text::Reader r, std::string& text) {
  if (in.Charge(r.size())) text.assign(r.begin(), r.size());
}

void Read(Reading& in, capnp::Data::Reader r, std::string& bytes) {
  if (in.Charge(r.size())) bytes.assign(reinterpret_cast<const char*>(r.begin()), r.size());
}

void Read(Reading& in, capnp::Data::Reader r, Digest& digest) {
  if (r.size() == 0) return;
  if (r.size() != digest.bytes.size()) {
    in.Fail("a digest is not 32 bytes long");
    return;
  }
  std::copy(r.begin(), r.end(), digest.bytes.begin());
}

void Write(Writing&, const LeaseNumber& m, wire::LeaseNumber::Builder b) {
  b.setIncarnation(m.incarnation);
  b.setCounter(m.counter);
}
void Read(Reading&, wire::LeaseNumber::Reader r, LeaseNumber& m) {
  m.incarnation = r.getIncarnation();
  m.counter = r.getCounter();
}

void Write(Writing&, const TaskId& m, wire::TaskId::Builder b) {
  b.setJob(m.job);
  b.setIndex(m.index);
}
void Read(Reading&, wire::TaskId::Reader r, TaskId& m) {
  m.job = r.getJob();
  m.index = r.getIndex();
}

void Write(Writing&, const ShardId& m, wire::ShardId::Builder b) {
  b.setEpoch(m.epoch);
  b.setBatch(m.batch);
  b.setRank(m.rank);
  b.setShard(m.shard);
}
void Read(Reading&, wire::ShardId::Reader r, ShardId& m) {
  m.epoch = r.getEpoch();
  m.batch = r.getBatch();
  m.rank = r.getRank();
  m.shard = r.getShard();
}

void Write(Writing&, const Grant& m, wire::Grant::Builder b) {
  b.setSlot(m.slot);
  b.setSlotGeneration(m.slot_generation);
  b.setPlace(m.place);
  b.setCount(m.count);
}
void Read(Reading&, wire::Grant::Reader r, Grant& m) {
  m.slot = r.getSlot();
  m.slot_generation = r.getSlotGeneration();
  m.place = r.getPlace();
  m.count = r.getCount();
}

void Write(Writing&, const StreamGeometry& m, wire::StreamGeometry::Builder b) {
  b.setPatchesPerEpoch(m.patches_per_epoch);
  b.setGlobalBatch(m.global_batch);
  b.setWorldSize(m.world_size);
  b.setShardPatches(m.shard_patches);
  b.setTail(ToWire<wire::Tail>(m.tail));
}
void Read(Reading& in, wire::StreamGeometry::Reader r, StreamGeometry& m) {
  m.patches_per_epoch = r.getPatchesPerEpoch();
  m.global_batch = r.getGlobalBatch();
  m.world_size = r.getWorldSize();
  m.shard_patches = r.getShardPatches();
  ReadEnum(in, r.getTail(), Tail::kWrap, m.tail);
}

void Write(Writing&, const Resources& m, wire::Resources::Builder b) {
  b.setCpuMillis(m.cpu_millis);
  b.setGpus(m.gpus);
  b.setMemoryBytes(m.memory_bytes);
}
void Read(Reading&, wire::Resources::Reader r, Resources& m) {
  m.cpu_millis = r.getCpuMillis();
  m.gpus = r.getGpus();
  m.memory_bytes = r.getMemoryBytes();
}

void Write(Writing&, const Outcome& m, wire::Outcome::Builder b) {
  b.setCode(m.code);
  if (!m.message.empty()) b.setMessage(AsText(m.message));
}
void Read(Reading& in, wire::Outcome::Reader r, Outcome& m) {
  m.code = r.getCode();
  Read(in, r.getMessage(), m.message);
}

void Write(Writing& out, const TaskSpec& m, wire::TaskSpec::Builder b) {
  b.setOp(AsText(m.op));
  b.setPayload(AsData(m.payload));
  Write(out, m.resources, b.initResources());
  WriteNumbers(out, m.depends_on, [&](unsigned n) { return b.initDependsOn(n); });
  b.setAfterFailures(m.after_failures);
  b.setGroup(m.group);
  b.setLabel(AsText(m.label));
  b.setWeight(m.weight);
}
void Read(Reading& in, wire::TaskSpec::Reader r, TaskSpec& m) {
  Read(in, r.getOp(), m.op);
  Read(in, r.getPayload(), m.payload);
  Read(in, r.getResources(), m.resources);
  ReadNumbers(in, r.getDependsOn(), m.depends_on);
  m.after_failures = r.getAfterFailures();
  m.group = r.getGroup();
  Read(in, r.getLabel(), m.label);
  m.weight = r.getWeight();
}

void Write(Writing&, const Heartbeat& m, wire::Heartbeat::Builder b) { b.setProgress(m.progress); }
void Read(Reading&, wire::Heartbeat::Reader r, Heartbeat& m) { m.progress = r.getProgress(); }

void Write(Writing&, const HeartbeatSeen& m, wire::HeartbeatSeen::Builder b) {
  b.setSchedulerIncarnation(m.scheduler_incarnation);
}
void Read(Reading&, wire::HeartbeatSeen::Reader r, HeartbeatSeen& m) {
  m.scheduler_incarnation = r.getSchedulerIncarnation();
}

void Write(Writing& out, const RequestFailed& m, wire::RequestFailed::Builder b) {
  Write(out, m.outcome, b.initOutcome());
}
void Read(Reading& in, wire::RequestFailed::Reader r, RequestFailed& m) {
  Read(in, r.getOutcome(), m.outcome);
}

}  // namespace patchbay::protocol::codec
