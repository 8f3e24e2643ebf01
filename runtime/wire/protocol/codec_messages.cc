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
PATCHBAY_EVERY_OUTCOME_PART(PATCHBAY_DEFINE_PART)
PATCHBAY_EVERY_BODY(PATCHBAY_DEFINE_BODY)

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
