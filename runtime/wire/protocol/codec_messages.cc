// Write and Read of every message and of the values inside them, from the lists of their fields.
#include "runtime/wire/protocol/codec_fields.h"

namespace patchbay::protocol::codec {

// The accessors take the builder as a parameter, so that only those that exist for a field's type
// are looked up.
#define PATCHBAY_WRITE_FIELD(member, Name)                                           \
  WriteField<decltype(b.asReader().get##Name())>(                                    \
      out, m.member, b, [](auto& builder, auto value) { builder.set##Name(value); }, \
      [](auto& builder, auto... size) { return builder.init##Name(size...); });
#define PATCHBAY_READ_FIELD(member, Name) ReadField(in, r.get##Name(), m.member);
#define PATCHBAY_DEFINE_PART(Type, Wire, FIELDS)                            \
  void Write([[maybe_unused]] Writing& out, [[maybe_unused]] const Type& m, \
             [[maybe_unused]] Wire::Builder b) {                            \
    FIELDS(PATCHBAY_WRITE_FIELD)                                            \
  }                                                                         \
  void Read([[maybe_unused]] Reading& in, [[maybe_unused]] Wire::Reader r,  \
            [[maybe_unused]] Type& m) {                                     \
    FIELDS(PATCHBAY_READ_FIELD)                                             \
  }
#define PATCHBAY_DEFINE_BODY(Type, CONSTANT, FIELDS) PATCHBAY_DEFINE_PART(Type, wire::Type, FIELDS)
PATCHBAY_EVERY_PART(PATCHBAY_DEFINE_PART)
PATCHBAY_EVERY_FORMED_PART(PATCHBAY_DEFINE_PART)
PATCHBAY_EVERY_BODY(PATCHBAY_DEFINE_BODY)

/// Units are found by batch, so they are cut as they are read.
void Write(Writing& out, const StreamGeometry& m, wire::StreamGeometry::Builder b) {
  b.setPatchesPerEpoch(m.patches_per_epoch);
  b.setGlobalBatch(m.global_batch);
  b.setWorldSize(m.world_size);
  b.setShardPatches(m.shard_patches);
  b.setTail(static_cast<wire::Tail>(m.tail));
  const std::vector<UnitRuns::Run> runs = m.units.runs();
  if (!runs.empty()) WriteElements(out, runs, b.initUnits(static_cast<unsigned>(runs.size())));
}
void Read(Reading& in, wire::StreamGeometry::Reader r, StreamGeometry& m) {
  m.patches_per_epoch = r.getPatchesPerEpoch();
  m.global_batch = r.getGlobalBatch();
  m.world_size = r.getWorldSize();
  m.shard_patches = r.getShardPatches();
  ReadEnum(in, r.getTail(), m.tail);
  std::vector<UnitRuns::Run> runs;
  ReadList(in, r.getUnits(), runs);
  if (runs.empty() || in.failure() != nullptr) return;
  StatusOr<UnitRuns> units = UnitRuns::Of(runs, m.global_batch);
  if (!units.ok()) return in.Fail("the units of a stream cannot be cut so");
  m.units = *std::move(units);
}

/// A union on the wire.
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

}  // namespace patchbay::protocol::codec
