#include "scheduler/state/wire.h"

namespace patchbay::scheduler {

void WireWriter::Subject(const patchbay::Subject& subject) {
  U64(static_cast<std::uint64_t>(subject.kind));
  U64(subject.index);
  Text(subject.part);
}

void WireWriter::Outcome(const patchbay::Outcome& outcome) {
  I64(outcome.code);
  Text(outcome.cause);
  Text(outcome.doing);
  Subject(outcome.subject);
  Text(outcome.advice);
  U64(outcome.others.size());
  for (const patchbay::Subject& other : outcome.others) Subject(other);
}

void WireWriter::Spec(const protocol::TaskSpec& spec) {
  Text(spec.op);
  Text(spec.payload);
  U64(spec.resources.cpu_millis);
  U64(spec.resources.gpus);
  U64(spec.resources.memory_bytes);
  U64(spec.depends_on.size());
  for (const std::uint32_t index : spec.depends_on) U64(index);
  U64(spec.after_failures ? 1 : 0);
  U64(spec.group);
  Text(spec.label);
  U64(spec.weight);
}

void WireWriter::Cost(const protocol::WorkCost& cost) {
  I64(cost.cpu_us);
  I64(cost.gpu_us);
  U64(cost.bytes_read);
  U64(cost.bytes_delivered);
}

std::uint64_t WireReader::U64() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  rest_ = {};
  return 0;
}

std::uint32_t WireReader::U32() {
  const std::uint64_t value = U64();
  if (value > UINT32_MAX) {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}

std::int64_t WireReader::I64() {
  const std::uint64_t value = U64();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::size_t WireReader::Count() {
  const std::uint64_t count = U64();
  if (count > rest_.size()) {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  return static_cast<std::size_t>(count);
}

std::string WireReader::Text() {
  const std::size_t size = Count();
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

std::vector<std::string> WireReader::Texts() {
  const std::size_t count = Count();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count && ok_; ++i) texts.push_back(Text());
  return texts;
}

TaskId WireReader::Task() {
  const std::uint64_t job = U64();
  return TaskId{job, U32()};
}

LeaseNumber WireReader::Lease() {
  const std::uint32_t incarnation = U32();
  return LeaseNumber{incarnation, U64()};
}

patchbay::Subject WireReader::Subject() {
  const std::uint64_t kind = U64();
  if (kind > static_cast<std::uint64_t>(SubjectKind::kPeer)) ok_ = false;
  const std::uint64_t index = U64();
  return {ok_ ? static_cast<SubjectKind>(kind) : SubjectKind::kNone, index, Text()};
}

patchbay::Outcome WireReader::Outcome(std::uint64_t version) {
  patchbay::Outcome outcome;
  outcome.code = static_cast<std::int32_t>(I64());
  outcome.cause = Text();
  if (version < 3) return outcome;
  outcome.doing = Text();
  outcome.subject = Subject();
  outcome.advice = Text();
  const std::size_t others = Count();
  for (std::size_t i = 0; i < others && ok_; ++i) outcome.others.push_back(Subject());
  return outcome;
}

protocol::TaskSpec WireReader::Spec() {
  protocol::TaskSpec spec;
  spec.op = Text();
  spec.payload = Text();
  spec.resources.cpu_millis = U32();
  spec.resources.gpus = U32();
  spec.resources.memory_bytes = U64();
  const std::size_t count = Count();
  spec.depends_on.reserve(count);
  for (std::size_t i = 0; i < count && ok_; ++i) spec.depends_on.push_back(U32());
  spec.after_failures = U64() != 0;
  spec.group = U32();
  spec.label = Text();
  spec.weight = U64();
  return spec;
}

protocol::WorkCost WireReader::Cost() {
  protocol::WorkCost cost;
  cost.cpu_us = I64();
  cost.gpu_us = I64();
  cost.bytes_read = U64();
  cost.bytes_delivered = U64();
  return cost;
}

}  // namespace patchbay::scheduler
