// Messages of trainers.
#include "runtime/wire/protocol/codec_parts.h"

namespace patchbay::protocol::codec {

void Write(Writing&, const TrainerEndpoint& m, wire::TrainerEndpoint::Builder b) {
  b.setRank(m.rank);
  b.setHostIdentity(AsText(m.host_identity));
  b.setNode(AsText(m.node));
  b.setSocketName(AsText(m.socket_name));
  b.setRemoteAddress(AsText(m.remote_address));
  b.setStreamSecret(AsData(m.stream_secret));
}
void Read(Reading& in, wire::TrainerEndpoint::Reader r, TrainerEndpoint& m) {
  m.rank = r.getRank();
  Read(in, r.getHostIdentity(), m.host_identity);
  Read(in, r.getNode(), m.node);
  Read(in, r.getSocketName(), m.socket_name);
  Read(in, r.getRemoteAddress(), m.remote_address);
  Read(in, r.getStreamSecret(), m.stream_secret);
}

void Write(Writing& out, const SlotRow& m, wire::SlotRow::Builder b) {
  b.setSlot(m.slot);
  b.setState(ToWire<wire::SlotState>(m.state));
  b.setGeneration(m.generation);
  b.setEpoch(m.epoch);
  b.setBatch(m.batch);
  WriteNumbers(out, m.counted, [&](unsigned n) { return b.initCounted(n); });
}
void Read(Reading& in, wire::SlotRow::Reader r, SlotRow& m) {
  m.slot = r.getSlot();
  ReadEnum(in, r.getState(), SlotState::kResting, m.state);
  m.generation = r.getGeneration();
  m.epoch = r.getEpoch();
  m.batch = r.getBatch();
  ReadNumbers(in, r.getCounted(), m.counted);
}

void Write(Writing& out, const AttachTrainer& m, wire::AttachTrainer::Builder b) {
  b.setStream(m.stream);
  b.setRank(m.rank);
  b.setWorldSize(m.world_size);
  b.setFirstEpoch(m.first_epoch);
  b.setFirstBatch(m.first_batch);
  b.setTrainerIncarnation(m.trainer_incarnation);
  b.setPid(m.pid);
  Write(out, m.endpoint, b.initEndpoint());
  WriteStructs(out, m.slots, [&](unsigned n) { return b.initSlots(n); });
  WriteNumbers(out, m.holders, [&](unsigned n) { return b.initHolders(n); });
}
void Read(Reading& in, wire::AttachTrainer::Reader r, AttachTrainer& m) {
  m.stream = r.getStream();
  m.rank = r.getRank();
  m.world_size = r.getWorldSize();
  m.first_epoch = r.getFirstEpoch();
  m.first_batch = r.getFirstBatch();
  m.trainer_incarnation = r.getTrainerIncarnation();
  m.pid = r.getPid();
  Read(in, r.getEndpoint(), m.endpoint);
  ReadEach(in, r.getSlots(), m.slots);
  ReadNumbers(in, r.getHolders(), m.holders);
}

void Write(Writing& out, const TrainerAttached& m, wire::TrainerAttached::Builder b) {
  b.setSchedulerIncarnation(m.scheduler_incarnation);
  b.setPlanDigest(AsData(m.plan_digest));
  Write(out, m.geometry, b.initGeometry());
}
void Read(Reading& in, wire::TrainerAttached::Reader r, TrainerAttached& m) {
  m.scheduler_incarnation = r.getSchedulerIncarnation();
  Read(in, r.getPlanDigest(), m.plan_digest);
  Read(in, r.getGeometry(), m.geometry);
}

void Write(Writing& out, const AnnounceSlots& m, wire::AnnounceSlots::Builder b) {
  b.setStream(m.stream);
  b.setRank(m.rank);
  WriteStructs(out, m.slots, [&](unsigned n) { return b.initSlots(n); });
}
void Read(Reading& in, wire::AnnounceSlots::Reader r, AnnounceSlots& m) {
  m.stream = r.getStream();
  m.rank = r.getRank();
  ReadEach(in, r.getSlots(), m.slots);
}

void Write(Writing& out, const ShardsCounted::Item& m, wire::ShardsCounted::Item::Builder b) {
  Write(out, m.lease, b.initLease());
  Write(out, m.shard, b.initShard());
}
void Read(Reading& in, wire::ShardsCounted::Item::Reader r, ShardsCounted::Item& m) {
  Read(in, r.getLease(), m.lease);
  Read(in, r.getShard(), m.shard);
}

void Write(Writing& out, const ShardsCounted& m, wire::ShardsCounted::Builder b) {
  b.setStream(m.stream);
  b.setRank(m.rank);
  WriteStructs(out, m.items, [&](unsigned n) { return b.initItems(n); });
}
void Read(Reading& in, wire::ShardsCounted::Reader r, ShardsCounted& m) {
  m.stream = r.getStream();
  m.rank = r.getRank();
  ReadEach(in, r.getItems(), m.items);
}

void Write(Writing&, const PeersDropped::Item& m, wire::PeersDropped::Item::Builder b) {
  b.setAddress(AsText(m.address));
  b.setReason(AsText(m.reason));
  b.setTimes(m.times);
  b.setLastAt(m.last_at);
}
void Read(Reading& in, wire::PeersDropped::Item::Reader r, PeersDropped::Item& m) {
  Read(in, r.getAddress(), m.address);
  Read(in, r.getReason(), m.reason);
  m.times = r.getTimes();
  m.last_at = r.getLastAt();
}

void Write(Writing& out, const PeersDropped& m, wire::PeersDropped::Builder b) {
  b.setStream(m.stream);
  b.setRank(m.rank);
  WriteStructs(out, m.items, [&](unsigned n) { return b.initItems(n); });
}
void Read(Reading& in, wire::PeersDropped::Reader r, PeersDropped& m) {
  m.stream = r.getStream();
  m.rank = r.getRank();
  ReadEach(in, r.getItems(), m.items);
}

void Write(Writing& out, const FenceShard& m, wire::FenceShard::Builder b) {
  b.setStream(m.stream);
  Write(out, m.lease, b.initLease());
  Write(out, m.shard, b.initShard());
  b.setWorkerPid(m.worker_pid);
  Write(out, m.grant, b.initGrant());
}
void Read(Reading& in, wire::FenceShard::Reader r, FenceShard& m) {
  m.stream = r.getStream();
  Read(in, r.getLease(), m.lease);
  Read(in, r.getShard(), m.shard);
  m.worker_pid = r.getWorkerPid();
  Read(in, r.getGrant(), m.grant);
}

void Write(Writing& out, const ShardFenced& m, wire::ShardFenced::Builder b) {
  b.setStream(m.stream);
  Write(out, m.lease, b.initLease());
  Write(out, m.shard, b.initShard());
  Write(out, m.row, b.initRow());
  b.setAlreadyCounted(m.already_counted);
}
void Read(Reading& in, wire::ShardFenced::Reader r, ShardFenced& m) {
  m.stream = r.getStream();
  Read(in, r.getLease(), m.lease);
  Read(in, r.getShard(), m.shard);
  Read(in, r.getRow(), m.row);
  m.already_counted = r.getAlreadyCounted();
}

void Write(Writing& out, const StreamFailed& m, wire::StreamFailed::Builder b) {
  b.setStream(m.stream);
  Write(out, m.outcome, b.initOutcome());
}
void Read(Reading& in, wire::StreamFailed::Reader r, StreamFailed& m) {
  m.stream = r.getStream();
  Read(in, r.getOutcome(), m.outcome);
}

void Write(Writing&, const DetachTrainer& m, wire::DetachTrainer::Builder b) {
  b.setStream(m.stream);
  b.setRank(m.rank);
}
void Read(Reading&, wire::DetachTrainer::Reader r, DetachTrainer& m) {
  m.stream = r.getStream();
  m.rank = r.getRank();
}

void Write(Writing&, const TrainerDetached&, wire::TrainerDetached::Builder) {}
void Read(Reading&, wire::TrainerDetached::Reader, TrainerDetached&) {}

}  // namespace patchbay::protocol::codec
