// Control messages that users and operators send, and their answers. messages.h includes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/outcome.h"
#include "runtime/wire/protocol/shared_values.h"

namespace patchbay::protocol {

// ---------------------------------------------------------------- users

/// A user asks for a job.
struct SubmitJob {
  std::string submission_key;  ///< chosen by the submitter; the same key gives the same job
  std::string kind;            ///< "ingest", "stream", "noop", ...
  std::string name;            ///< shown to people; no PHI
  TaskSpec root;
  /// JSON with the paths; only the owner may see it, and no log has it.
  std::string manifest;
  std::int32_t priority = 0;     ///< -100..100, above 0 for operators; higher first, then the older
  std::uint32_t world_size = 1;  ///< ranks, for stream jobs
  /// Where the submitter has an open stream job of this name, that job is the answer; it is refused
  /// when this submission differs from it.
  bool join = false;
  /// A stream beyond the most that its team may have waits for its place; otherwise it is refused.
  bool waits = false;
};
/// The job is in the journal under this number.
struct JobSubmitted {
  JobId job = 0;
};

/// A task that ended badly, for people.
struct FailedTask {
  TaskId task;
  std::string label;
  Outcome outcome;
  std::uint32_t group = 0;  ///< TaskSpec::group: of a job over slides, the number of its slide + 1
  bool operator==(const FailedTask&) const = default;
};
/// The course of a stream. Shares are in thousandths; "now" is the last 10 to 20 seconds.
struct StreamCourse {
  std::uint64_t patches_per_ks = 0;  ///< patches made in 1000 s at the rate of now
  std::uint32_t stalled = 0;         ///< share of now in which some trainer had no batch
  std::string stage;  ///< stage that takes the most of the workers' time now; empty: none is known
  std::string node;   ///< where it takes longest for a patch
  /// Shares of the last hour: the trainers' waiting, divided among storage, decode, transform and
  /// transfer, then the rest. Empty: not known yet.
  std::vector<std::uint32_t> hour;
  bool operator==(const StreamCourse&) const = default;
};
/// A job as `jobs`, `job` and `status` show it.
struct JobRow {
  JobId job = 0;
  std::string kind, name, submitter;
  JobState state = JobState::kQueued;
  std::int32_t priority = 0;
  std::int64_t submitted_at = 0, finished_at = 0;  ///< seconds since 1970
  std::uint64_t tasks_total = 0, tasks_done = 0, tasks_failed = 0, tasks_running = 0;
  std::uint64_t weight_total = 0, weight_done = 0, progress_bytes = 0;
  std::vector<FailedTask> failed;   ///< at most 1000
  std::string waits_for;            ///< peer that its stream waits for; empty: none to name
  std::uint64_t unattended_ms = 0;  ///< for how long a planned stream had no trainer; 0: it has one
  bool on_hold = false;             ///< its user keeps it from starting more work
  std::uint32_t wanted_cpu_millis = 0, held_cpu_millis = 0;  ///< now; 1000 = one core
  std::string cause;  ///< code of JobExplained while it waits; empty: it does not
  std::uint64_t patches_made = 0, patches_total = 0;  ///< patches of a stream, all its epochs
  std::uint64_t stalled_ms = 0;  ///< for how long its trainers had no batch, in all
  std::string team;              ///< empty: no policy of teams holds
  StreamCourse course;           ///< set for an open stream
  bool operator==(const JobRow&) const = default;
};
/// A request for rows of jobs. An operator's request covers all jobs, a user's its own.
struct DescribeJobs {
  std::vector<JobId> jobs;  ///< empty = all jobs, newest first, as many as fit into a reply
  JobId before = 0;         ///< with `jobs` empty, only jobs older than this one; 0 = all
};
/// The answer to DescribeJobs, newest first.
struct JobsDescribed {
  std::vector<JobRow> jobs;
};
/// The result of a task of a finished or running job (0 = the root task).
struct FetchResult {
  TaskId task;
  std::uint64_t offset = 0;
};
/// The answer to FetchResult: a piece of the result, or none while the task runs.
struct ResultFetched {
  TaskId task;
  TaskState state = TaskState::kWaiting;
  std::string result;              ///< from the offset on, at most kMaxInlineResultBytes
  std::uint64_t result_bytes = 0;  ///< bytes of the whole result
};
/// A user ends a job; its tasks and shards are revoked.
struct CancelJob {
  JobId job = 0;
};
/// The cancellation is in the journal.
struct JobCancelled {};
/// Failed, cancelled and quarantined tasks of the job are made ready again.
struct RetryJob {
  JobId job = 0;
};
/// The answer to RetryJob: how many tasks are ready again.
struct JobRetried {
  std::uint64_t tasks = 0;
};
/// A change of a job that its user or an operator makes.
enum class JobChange : std::uint8_t { kPriority, kHold, kRelease, kForget };
/// A user changes a job. A job on hold starts no more work; what runs ends by itself.
struct ChangeJob {
  JobId job = 0;
  JobChange change = JobChange::kPriority;
  std::int32_t priority = 0;  ///< with kPriority; limits: SubmitJob::priority
};
/// The change is in the journal.
struct JobChanged {};
/// A user asks for the reason that a job waits.
struct ExplainJob {
  JobId job = 0;
};
/// The answer to ExplainJob.
struct JobExplained {
  /// One line for people, "held by" for example, and its text.
  struct Fact {
    std::string name, text;
    bool operator==(const Fact&) const = default;
  };
  std::string cause;  ///< one of a fixed list of codes; empty: it does not wait
  std::vector<Fact> facts;
};
/// A user asks for lines of a job's log.
struct FetchLogs {
  JobId job = 0;
  std::uint64_t after = 0;  ///< sequence number of the last line already seen
};
/// The answer to FetchLogs, oldest first; none when nothing is new.
struct LogsFetched {
  /// One line of the log.
  struct Line {
    std::uint64_t sequence = 0;
    std::int64_t at = 0;
    std::string text;
    Outcome outcome{};  ///< the cause, printed after the text; code 0: the text is complete
    bool operator==(const Line&) const = default;
  };
  std::vector<Line> lines;
};
/// A node as `status` shows it.
struct NodeRow {
  std::string node, state;  ///< "up", "suspect", "draining", "away"
  std::uint32_t cpus = 0;
  std::vector<Gpu> gpus;
  std::uint32_t workers = 0;
  std::string drained_by, drain_reason;  ///< set by kDrain; empty: no operator drained it
  std::string label;                     ///< set by kLabel
  bool operator==(const NodeRow&) const = default;
};
/// A worker as `status` shows it.
struct WorkerRow {
  std::string node;
  std::uint32_t index = 0;
  std::int64_t pid = 0;
  std::string state;  ///< "idle", "busy", "suspect", "draining"
  std::uint32_t leases = 0;
  std::uint64_t tasks_done = 0, shards_done = 0;
  bool operator==(const WorkerRow&) const = default;
};
/// A user asks for nodes, workers and running jobs.
struct DescribeCluster {};
/// The answer to DescribeCluster.
struct ClusterDescribed {
  std::vector<NodeRow> nodes;
  std::vector<WorkerRow> workers;
  std::vector<JobRow> jobs;
  std::vector<PeersDropped> peers_dropped;  ///< last reported drops of streams the asker may see
  /// A line of a job's log that says why something failed.
  struct Failure {
    JobId job = 0;
    std::int64_t at = 0;  ///< seconds since 1970
    std::string text;
    Outcome outcome;
    bool operator==(const Failure&) const = default;
  };
  std::vector<Failure> failures;       ///< the last hour's, newest first
  std::uint64_t state_free_bytes = 0;  ///< where the journal is; 0: not known
};
/// A change of a node that an operator makes.
enum class NodeChange : std::uint8_t { kDrain, kResume, kLabel };
/// Operator: a drained node finishes what it runs and gets no more until it is resumed. A label is
/// for people.
struct ChangeNode {
  std::string node;
  NodeChange change = NodeChange::kDrain;
  std::string text;  ///< with kDrain the reason; with kLabel the label, empty for none
};
/// The change is in the journal.
struct NodeChanged {};

// ---------------------------------------------------------------- teams and usage

/// Operator: the policy of teams from now on.
struct ApplyTeams {
  std::string policy;   ///< JSON of the policy, as model::TeamPolicy is written
  std::string source;   ///< bytes of the file that it was read from, for `teams show`
  std::string move_to;  ///< team that gets the jobs of teams that are gone; empty: refused then
};
/// The policy is in the journal and holds.
struct TeamsApplied {
  std::vector<std::string> warnings;
};
/// A user asks for the policy and the shares.
struct DescribeTeams {};
/// A team, or a user of it, as `teams show` shows it. Amounts of cores are in thousandths.
struct TeamRow {
  std::string team, user;  ///< user empty: the team as a whole
  std::uint64_t guaranteed_cpu_millis = 0, most_cpu_millis = 0;  ///< in force; most 0: no cap
  std::uint32_t weight_millis = 1000;
  std::uint64_t wanted_cpu_millis = 0, held_cpu_millis = 0;
  std::uint64_t used_cpu_ms = 0;  ///< processor time, decayed
  std::uint32_t jobs_open = 0;
  std::uint64_t guaranteed_gpus = 0;
  std::int64_t most_gpus = -1;  ///< -1: no cap
  std::uint64_t held_gpus = 0;
  std::uint64_t guaranteed_memory_bytes = 0, most_memory_bytes = 0;  ///< most 0: no cap
  std::uint64_t held_memory_bytes = 0;
  std::uint32_t lend_percent =
      100;  ///< part of its guarantee that others may have while it is idle
  bool operator==(const TeamRow&) const = default;
};
/// The answer to DescribeTeams: for members their own team by user, for operators everything.
struct TeamsDescribed {
  std::string source;  ///< for operators; empty: no policy was applied
  Digest digest;       ///< SHA-256 of the source
  std::string applied_by;
  std::int64_t applied_at = 0;  ///< seconds since 1970
  std::vector<std::string> warnings;
  std::vector<TeamRow> rows;
};
/// A user asks for what was consumed.
struct FetchUsage {
  std::int64_t since = 0;    ///< seconds since 1970
  std::uint64_t offset = 0;  ///< rows of the answer that the asker has already
};
/// Consumption of a job in one hour, or of all jobs of a user together, with job 0.
struct UsageRow {
  std::int64_t hour = 0;   ///< its first second, since 1970
  std::string team, user;  ///< team "": of none
  JobId job = 0;
  WorkCost counted, wasted;  ///< wasted: for work that did not count
  bool operator==(const UsageRow&) const = default;
};
/// The answer to FetchUsage, oldest first: a user's own rows, for operators all.
struct UsageFetched {
  std::vector<UsageRow> rows;
  bool complete = false;  ///< no rows follow
};

/// Operator: read the key table again; sessions of revoked keys end.
struct ReloadKeys {};
/// The key table was read; sessions of revoked keys have ended.
struct KeysReloaded {};
/// Operator: drain agents, then stop.
struct ShutDown {};
/// The scheduler drains and then ends.
struct ShuttingDown {
  std::uint64_t deadline_ms = 0;  ///< from now, at the latest
};

// ---------------------------------------------------------------- the dashboard

/// The browser that shows this code sees from now on what the sender may see.
struct AdmitBrowser {
  std::string code;
};
/// The browser sees it.
struct BrowserAdmitted {};

}  // namespace patchbay::protocol
