#include "scheduler/state/records.h"

#include <utility>

#include "runtime/core/other_version.h"
#include "scheduler/state/wire.h"

namespace patchbay::scheduler {
namespace {

void Write(WireWriter& out, const StartRecord& r) { out.U64(r.incarnation); }
void Write(WireWriter& out, const SubmitRecord& r) {
  out.U64(r.job);
  out.Text(r.submitter);
  out.Text(r.submission_key);
  out.Text(r.kind);
  out.Text(r.name);
  out.Spec(r.root);
  out.Text(r.manifest);
  out.I64(r.priority);
  out.U64(r.world_size);
  out.Texts(r.read_prefixes);
  out.Texts(r.write_prefixes);
  out.Text(r.team);
}
void Write(WireWriter& out, const CommitRecord& r) {
  out.Task(r.task);
  out.Lease(r.lease);
  out.Text(r.result);
  out.U64(r.progress_bytes);
  out.U64(r.spawned.size());
  for (const protocol::TaskSpec& spec : r.spawned) out.Spec(spec);
  out.Cost(r.cost);
}
void Write(WireWriter& out, const FailRecord& r) {
  out.Task(r.task);
  out.Outcome(r.outcome);
  out.U64(r.quarantined ? 1 : 0);
}
void Write(WireWriter& out, const CancelRecord& r) { out.U64(r.job); }
void Write(WireWriter& out, const RetryRecord& r) {
  out.U64(r.job);
  out.U64(r.sender);
  out.U64(r.request);
  out.Lease(r.void_leases);
}
void Write(WireWriter& out, const EndStreamRecord& r) {
  out.U64(r.job);
  out.U64(static_cast<std::uint64_t>(r.state));
  out.Outcome(r.outcome);
}

void Write(WireWriter& out, const WorkerSeenRecord& r) {
  out.Text(r.node);
  out.U64(r.index);
  out.U64(r.worker_incarnation);
  out.U64(r.agent_incarnation);
  out.I64(r.pid);
  out.Text(r.host_identity);
}
void Write(WireWriter& out, const WorkerGoneRecord& r) {
  out.Text(r.node);
  out.U64(r.index);
}

void Write(WireWriter& out, const DetachRecord& r) {
  out.U64(r.job);
  out.U64(r.rank);
}

void Write(WireWriter& out, const FinishUnitRecord& r) {
  out.U64(r.job);
  out.U64(r.unit);
  out.Outcome(r.outcome);
}

void Write(WireWriter& out, const UsageRecord& r) {
  out.U64(r.charges.size());
  for (const Charge& charge : r.charges) Write(out, charge.payer, charge.usage);
}

void Write(WireWriter& out, const ChangeJobRecord& r) {
  out.U64(r.job);
  out.I64(r.priority);
  out.U64(r.on_hold ? 1 : 0);
}

void Write(WireWriter& out, const ChangeNodeRecord& r) {
  out.Text(r.node);
  out.Text(r.by);
  out.Text(r.reason);
  out.Text(r.label);
}

void Write(WireWriter& out, const ApplyTeamsRecord& r) {
  out.Text(r.policy);
  out.Text(r.source);
  out.Text(r.by);
  out.Text(r.move_to);
}

void Write(WireWriter& out, const ForgetJobRecord& r) { out.U64(r.job); }

SubmitRecord ReadSubmit(WireReader& in, std::uint64_t version) {
  SubmitRecord r;
  r.job = in.U64();
  r.submitter = in.Text();
  r.submission_key = in.Text();
  r.kind = in.Text();
  r.name = in.Text();
  r.root = in.Spec();
  r.manifest = in.Text();
  r.priority = static_cast<std::int32_t>(in.I64());
  r.world_size = in.U32();
  r.read_prefixes = in.Texts();
  r.write_prefixes = in.Texts();
  if (version >= 5) r.team = in.Text();
  return r;
}
CommitRecord ReadCommit(WireReader& in, std::uint64_t version) {
  CommitRecord r;
  r.task = in.Task();
  r.lease = in.Lease();
  r.result = in.Text();
  r.progress_bytes = in.U64();
  const std::size_t count = in.Count();
  for (std::size_t i = 0; i < count && in.ok(); ++i) r.spawned.push_back(in.Spec());
  if (version >= 5) r.cost = in.Cost();
  return r;
}
FailRecord ReadFail(WireReader& in, std::uint64_t version) {
  FailRecord r;
  r.task = in.Task();
  r.outcome = in.Outcome(version);
  r.quarantined = in.U64() != 0;
  return r;
}
RetryRecord ReadRetry(WireReader& in, std::uint64_t version) {
  RetryRecord r;
  r.job = in.U64();
  r.starts_over = version >= 2;
  if (!r.starts_over) return r;
  r.sender = in.U64();
  r.request = in.U64();
  r.void_leases = in.Lease();
  return r;
}
EndStreamRecord ReadEndStream(WireReader& in, std::uint64_t version) {
  EndStreamRecord r;
  r.job = in.U64();
  const std::uint64_t state = in.U64();
  r.state = static_cast<protocol::JobState>(state <= 5 ? state : 3);
  r.outcome = in.Outcome(version);
  return r;
}

WorkerSeenRecord ReadWorkerSeen(WireReader& in) {
  WorkerSeenRecord r;
  r.node = in.Text();
  r.index = in.U32();
  r.worker_incarnation = in.U64();
  r.agent_incarnation = in.U64();
  r.pid = in.I64();
  r.host_identity = in.Text();
  return r;
}
WorkerGoneRecord ReadWorkerGone(WireReader& in) {
  WorkerGoneRecord r;
  r.node = in.Text();
  r.index = in.U32();
  return r;
}

FinishUnitRecord ReadFinishUnit(WireReader& in, std::uint64_t version) {
  FinishUnitRecord r;
  r.job = in.U64();
  r.unit = in.U64();
  r.outcome = in.Outcome(version);
  return r;
}

UsageRecord ReadUsage(WireReader& in) {
  UsageRecord r;
  const std::size_t count = in.Count();
  for (std::size_t i = 0; i < count && in.ok(); ++i) r.charges.push_back(ReadCharge(in));
  return r;
}

ChangeJobRecord ReadChangeJob(WireReader& in) {
  ChangeJobRecord r;
  r.job = in.U64();
  r.priority = static_cast<std::int32_t>(in.I64());
  r.on_hold = in.U64() != 0;
  return r;
}

ChangeNodeRecord ReadChangeNode(WireReader& in, std::uint64_t version) {
  ChangeNodeRecord r;
  r.node = in.Text();
  r.by = in.Text();
  r.reason = in.Text();
  if (version >= 6) r.label = in.Text();
  return r;
}

ApplyTeamsRecord ReadApplyTeams(WireReader& in) {
  ApplyTeamsRecord r;
  r.policy = in.Text();
  r.source = in.Text();
  r.by = in.Text();
  r.move_to = in.Text();
  return r;
}

RecordBody ReadBody(WireReader& in, std::uint64_t kind, std::uint64_t version) {
  switch (kind) {
    case 0:
      return StartRecord{in.U32()};
    case 1:
      return ReadSubmit(in, version);
    case 2:
      return ReadCommit(in, version);
    case 3:
      return ReadFail(in, version);
    case 4:
      return CancelRecord{in.U64()};
    case 5:
      return ReadRetry(in, version);
    case 6:
      return ReadEndStream(in, version);
    case 7:
      return ReadWorkerSeen(in);
    case 8:
      return ReadWorkerGone(in);
    case 9: {
      const JobId job = in.U64();
      return DetachRecord{job, in.U32()};
    }
    case 10:
      return ReadFinishUnit(in, version);
    case 11:
      return ReadUsage(in);
    case 12:
      return ReadChangeJob(in);
    case 13:
      return ReadChangeNode(in, version);
    case 14:
      return ReadApplyTeams(in);
    default:
      return ForgetJobRecord{in.U64()};
  }
}

}  // namespace

std::string EncodeRecord(const Record& record) {
  WireWriter out;
  out.Reserve(64);  // a commit without a result
  out.U64(kRecordVersion);
  out.U64(record.body.index());
  out.I64(record.at);
  std::visit([&](const auto& body) { Write(out, body); }, record.body);
  return out.Take();
}

bool AsksForErasure(std::string_view record) {
  WireReader in(record);
  in.U64();  // version
  return in.U64() == RecordBody(ForgetJobRecord{}).index();
}

StatusOr<Record> DecodeRecord(std::string_view bytes) {
  WireReader in(bytes);
  const std::uint64_t version = in.U64();
  if (in.ok() && version > kRecordVersion) {
    return FailedPrecondition(
        "read journal record: ",
        OtherVersion(version, StrCat("1 to ", kRecordVersion), kTakeItsRelease));
  }
  const std::uint64_t kind = in.U64();
  Record record;
  record.at = in.I64();
  if (in.ok() && version != 0 && kind < std::variant_size_v<RecordBody>) {
    record.body = ReadBody(in, kind, version);
    if (in.Finished()) return record;
  }
  return DataLoss("read journal record: damaged (", bytes.size(), " bytes)");
}

}  // namespace patchbay::scheduler
