// The records of the journal: one record a fact. State changes only by applying records, in the
// live scheduler and in replay alike, so both reach the same state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/state/usage_ledger.h"

namespace patchbay::scheduler {

/// Version of records, snapshots and the journal's file; a newer one is refused.
inline constexpr std::uint64_t kRecordVersion = 7;

/// The scheduler started once more.
struct StartRecord {
  std::uint32_t incarnation = 0;
};
/// A job was submitted, with its root task.
struct SubmitRecord {
  JobId job = 0;
  std::string submitter;  ///< key name
  std::string submission_key, kind, name;
  protocol::TaskSpec root;
  std::string manifest;
  std::int32_t priority = 0;
  std::uint32_t world_size = 1;
  std::vector<std::string> read_prefixes, write_prefixes;  ///< the key's prefixes at submission
  std::string team;  ///< empty = the default team, as in journals before version 5
};
/// A task's result counts, and the tasks it spawned exist.
struct CommitRecord {
  TaskId task;
  LeaseNumber lease;
  std::string result;
  std::uint64_t progress_bytes = 0;
  std::vector<protocol::TaskSpec> spawned;
  protocol::WorkCost cost = {};  ///< charged to the job
};
/// A task failed for good. Its dependents and the rest of its group end with it.
struct FailRecord {
  TaskId task;
  Outcome outcome;
  bool quarantined = false;  ///< it killed workers
};
/// All tasks that have not ended are cancelled.
struct CancelRecord {
  JobId job = 0;
};
/// Tasks that did not succeed run again, and so do their successors: scheduler/state/retry_plan.h.
struct RetryRecord {
  JobId job = 0;
  std::uint64_t sender = 0, request = 0;  ///< the same pair again is the same retry
  LeaseNumber void_leases;                ///< reports under leases up to this are stale
  bool starts_over = true;  ///< false in journals of version 1: nothing was superseded then
};
/// A stream job ended: kDone, kFailed or kCancelled.
struct EndStreamRecord {
  JobId job = 0;
  protocol::JobState state = protocol::JobState::kDone;
  Outcome outcome;
};

/// A rank left a stream job by itself.
struct DetachRecord {
  JobId job = 0;
  std::uint32_t rank = 0;
};
/// A worker process registered: it may hold leases until it is proven dead.
struct WorkerSeenRecord {
  std::string node;
  std::uint32_t index = 0;
  std::uint64_t worker_incarnation = 0, agent_incarnation = 0;
  std::int64_t pid = 0;
  std::string host_identity;
};
/// The process of that worker ended, or its node was forgotten.
struct WorkerGoneRecord {
  std::string node;
  std::uint32_t index = 0;
};

/// A unit of a stream is finished, or with another outcome than OK failed alone.
struct FinishUnitRecord {
  JobId job = 0;
  std::uint64_t unit = 0;
  Outcome outcome;
};

/// Charges since the last such record, but for those of commits.
struct UsageRecord {
  std::vector<Charge> charges;
};
/// A job's priority and hold from now on.
struct ChangeJobRecord {
  JobId job = 0;
  std::int32_t priority = 0;
  bool on_hold = false;
};

/// A node's marks from now on: drained by an operator, or with nobody in `by` not; its label.
struct ChangeNodeRecord {
  std::string node, by, reason, label;
  bool operator==(const ChangeNodeRecord&) const = default;
};
/// The policy of teams from now on.
struct ApplyTeamsRecord {
  std::string policy;   ///< JSON
  std::string source;   ///< bytes of the file that it was read from
  std::string by;       ///< name of the operator's key
  std::string move_to;  ///< team that gets the jobs of teams that are gone
};
/// An ended job leaves the state before its time.
struct ForgetJobRecord {
  JobId job = 0;
};

using RecordBody = std::variant<StartRecord, SubmitRecord, CommitRecord, FailRecord, CancelRecord,
                                RetryRecord, EndStreamRecord, WorkerSeenRecord, WorkerGoneRecord,
                                DetachRecord, FinishUnitRecord, UsageRecord, ChangeJobRecord,
                                ChangeNodeRecord, ApplyTeamsRecord, ForgetJobRecord>;
/// One change of the durable state; replaying all records in order gives it again.
struct Record {
  std::int64_t at = 0;  ///< seconds since 1970
  RecordBody body;
};

std::string EncodeRecord(const Record& record);
/// Whether a compaction is to follow the record, in which nothing is left of what it dropped.
bool AsksForErasure(std::string_view record);
/// DataLoss when the bytes are not a record of a known version.
StatusOr<Record> DecodeRecord(std::string_view bytes);

}  // namespace patchbay::scheduler
