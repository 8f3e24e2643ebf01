// Every control message as a plain struct. patchbay.capnp is the specification of the same messages
// on the wire; codec.h turns one into the other. Sequence: runtime/wire/protocol/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/outcome.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/model/stream/unit_course.h"

namespace patchbay::protocol {

inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::uint16_t kMinProtocolVersion = 1;
/// A result of 1 MiB and its inputs fit with room.
inline constexpr std::size_t kMaxMessageBytes = 8u << 20;
/// The most bytes of a result in one message; the rest is in the messages before it or after it.
inline constexpr std::size_t kMaxInlineResultBytes = 1u << 20;
inline constexpr std::size_t kMaxDroppedPeers = 32;  ///< named by one trainer
inline constexpr std::size_t kMaxResultBytes = 32u << 20;
inline constexpr std::size_t kMaxTaskInputBytes = 128u << 20;  ///< results a task may depend on
/// The task index that stands for the job's last task in FetchResult; its result is a stream's
/// plan.
inline constexpr std::uint32_t kLastTask = UINT32_MAX;

// ---------------------------------------------------------------- shared values

/// Resources that a task needs while it runs.
struct Resources {
  std::uint32_t cpu_millis = 1000;  ///< 1000 = one core
  std::uint32_t gpus = 0;
  std::uint64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

/// The specification of a task, as a job or another task submits it. `depends_on` are indices in
/// the same job.
struct TaskSpec {
  std::string op;       ///< a registered task op: "noop", "stream.plan", "ingest.shard", ...
  std::string payload;  ///< JSON, defined by the op; never a path (see manifest)
  Resources resources;
  std::vector<std::uint32_t> depends_on;  ///< their results become `inputs`, in this order
  /// false: runs when every dependency succeeded, is cancelled when one did not. true: runs once
  /// every dependency has ended in whatever state; the input of one that did not succeed is empty.
  /// true with an empty depends_on: runs once every other task of the job has ended (the summary).
  bool after_failures = false;
  /// 0 = the job; tasks of one group (one slide) fail together and leave others alone.
  std::uint32_t group = 0;
  std::string label;         ///< short, no PHI: shown in `patchbay job ID`
  std::uint64_t weight = 1;  ///< share of the job's progress (bytes, pixels)
  bool operator==(const TaskSpec&) const = default;
};

/// States of a job; the last four are final. kPartlyFailed: some groups of tasks failed, others did
/// not.
enum class JobState : std::uint8_t { kQueued, kRunning, kDone, kFailed, kPartlyFailed, kCancelled };
/// States of a task; the last four are final until a retry. kWaiting: for its dependencies.
/// kQuarantined: it was alone on workers that died, three times.
enum class TaskState : std::uint8_t {
  kWaiting,
  kReady,
  kLeased,
  kDone,
  kFailed,
  kCancelled,
  kQuarantined
};

// ---------------------------------------------------------------- any peer

/// Sent by agents and trainers from a thread that does no task work, about every 500 ms.
struct Heartbeat {
  std::uint64_t progress = 0;
};
/// The scheduler is alive; a higher incarnation means that it was restarted.
struct HeartbeatSeen {
  std::uint32_t scheduler_incarnation = 0;
};
/// The answer to a request that cannot be carried out. The connection stays.
struct RequestFailed {
  Outcome outcome;
};

// ---------------------------------------------------------------- agents and workers

/// A GPU that a node offers.
struct Gpu {
  std::string uuid;
  std::string name;
  std::uint64_t memory_bytes = 0;
  bool operator==(const Gpu&) const = default;
};

/// An agent offers its node. Repeating it is harmless.
struct RegisterAgent {
  std::string node;           ///< name of the node; must be the one its key allows
  std::string host_identity;  ///< HostIdentity(): the same = mapped delivery is possible
  std::uint32_t cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<Gpu> gpus;
  std::uint64_t agent_incarnation = 0;
  std::string host_name;  ///< HostName(): for messages to people
};
/// The answer to RegisterAgent: how often the agent is to send heartbeats.
struct AgentRegistered {
  std::uint32_t scheduler_incarnation = 0;
  std::uint32_t heartbeat_ms = 500;
};

/// A lease as its holder knows it.
struct HeldLease {
  LeaseNumber lease;
  bool is_shard = false;
  TaskId task;               ///< when !is_shard
  std::uint64_t stream = 0;  ///< when is_shard
  ShardId shard;
  bool operator==(const HeldLease&) const = default;
};

/// A worker process registers, with the leases that it still holds after a restart of the
/// scheduler.
struct RegisterWorker {
  std::string node;
  std::uint32_t index = 0;  ///< on its node
  std::uint64_t agent_incarnation = 0;
  std::uint64_t worker_incarnation = 0;  ///< random per process
  std::int64_t pid = 0;                  ///< in the node's PID namespace
  Numerics numerics = Numerics::kCpu;
  Resources capacity;
  std::vector<HeldLease> held;
  /// plan::ByteVersions of the worker; it makes shards only of plans with equal versions.
  std::string byte_versions;
  std::string host_identity;  ///< HostIdentity()
};
/// The answer to RegisterWorker: how long a lease lives that is not renewed.
struct WorkerRegistered {
  std::uint32_t scheduler_incarnation = 0;
  std::uint32_t lease_ms = 10'000;
};

/// The right to run a task until the deadline.
struct TaskLease {
  LeaseNumber lease;
  TaskId task;
  std::string op;
  std::string payload;
  std::vector<std::string> inputs;  ///< results of depends_on, in order
  /// Instead of `inputs` where they do not fit one message: the indices of depends_on, each to be
  /// fetched with FetchResult before the task starts.
  std::vector<std::uint32_t> inputs_apart;
  std::string manifest;   ///< the job's manifest (paths): for the worker's eyes, never logged
  std::string submitter;  ///< key name whose path prefixes bind this task
  std::vector<std::string> read_prefixes,
      write_prefixes;     ///< prefixes of the submitter's key; empty = none allowed; "/" = all
  bool planning = false;  ///< for the worker's planning thread, which runs planning ops alone
};
/// The right to make one shard and to write it into the slot of the grant.
struct ShardLease {
  LeaseNumber lease;
  std::uint64_t stream = 0;
  ShardId shard;
  std::uint64_t first_ordinal = 0;  ///< ordinal of its first patch, in the epoch
  Grant grant;
};
/// Sent without a request, scheduler to worker: as many leases as its queue allows.
struct LeasesGranted {
  std::vector<TaskLease> tasks;
  std::vector<ShardLease> shards;
};
/// Sent without a request: stop work on these leases (cancelled job, fenced shard, lost trainer).
/// Work that has not started is dropped.
struct LeasesRevoked {
  std::vector<LeaseNumber> leases;
};

/// Asks for the facts of a stream that a worker must know before its first shard.
struct FetchStream {
  std::uint64_t stream = 0;
  std::uint64_t offset = 0;  ///< in plan and manifest, one after the other
};
/// Where the workers of a stream deliver one rank's patches.
struct TrainerEndpoint {
  std::uint32_t rank = 0;
  std::string host_identity;
  std::string node;
  /// Abstract Unix socket (without the leading NUL) that hands out the ring.
  std::string socket_name;
  /// For workers of other nodes: "tls://ip:port/incarnation" of the trainer, or "ucx://" and the
  /// address of its UCX worker in hex digits; empty: accepts no batches from other nodes.
  std::string remote_address;
  std::string stream_secret;  ///< 32 bytes; shown by every peer that wants to write
  bool operator==(const TrainerEndpoint&) const = default;
};
/// The answer to FetchStream, and unasked when the stream's trainers changed.
struct StreamDescribed {
  std::uint64_t stream = 0;
  Digest plan_digest;
  /// The text that the digest is over, and the paths in the order of the plan's image table: of
  /// both together kMaxInlineResultBytes from the requested offset. Both are empty in an unasked
  /// message: only the trainers changed.
  std::string plan, manifest;
  std::vector<TrainerEndpoint> trainers;
  std::vector<std::string> read_prefixes;
  std::uint64_t plan_bytes = 0, manifest_bytes = 0;  ///< bytes of the whole texts
  StreamGeometry geometry;
  std::uint32_t capacity = 0;  ///< most patches any rank's part has
};

/// Progress of a worker's running work, sent about every second. A lease whose counter does not
/// rise is not renewed.
struct RenewLeases {
  /// The progress counter of one lease.
  struct Item {
    LeaseNumber lease;
    std::uint64_t progress = 0;
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> items;
};
/// The answer to RenewLeases. Leases that it does not name go on.
struct LeasesRenewed {
  std::vector<LeaseNumber> unknown;  ///< drop these: they are no longer yours
};

/// Outcomes of tasks. Repeated until TasksCommitted names them; committing twice is harmless.
struct TasksFinished {
  /// The outcome of one task under one lease.
  struct Item {
    LeaseNumber lease;
    TaskId task;
    Outcome outcome;
    std::string result;  ///< its end, at most kMaxInlineResultBytes
    /// Appended to the job when this commits. depends_on counts from kSpawnedBase for siblings in
    /// this list; smaller numbers are existing tasks.
    std::vector<TaskSpec> spawned;
    std::uint64_t progress_bytes = 0;  ///< work done, for rates
    /// Where `result` begins: the bytes sent before by PutResultPart.
    std::uint64_t result_offset = 0;
  };
  std::vector<Item> items;
};
/// The next piece of a result that one message does not carry. Kept with the lease, not durable:
/// the TasksFinished that follows makes it so.
struct PutResultPart {
  LeaseNumber lease;
  TaskId task;
  std::uint64_t offset = 0;  ///< bytes put before
  std::string bytes;
};
/// The answer to PutResultPart.
struct ResultPartKept {
  std::uint64_t kept_bytes = 0;  ///< so far
};
inline constexpr std::uint32_t kSpawnedBase = 1u << 31;

/// Outcomes that are in the journal.
struct TasksCommitted {
  std::vector<LeaseNumber> leases;  ///< durable, or known to be stale: forget them
};

/// A worker is done with shard leases (delivered or failed), which frees its queue; the trainer
/// decides whether a shard counts. After a failed delivery the worker's process is barred from that
/// trainer for a while.
struct ShardsReturned {
  /// One shard lease that ended, and how.
  struct Item {
    LeaseNumber lease;
    std::uint64_t stream = 0;
    ShardId shard;
    Outcome outcome;  ///< Unavailable = delivery failed, try elsewhere; DataLoss = input is bad,
                      ///< fail the stream
  };
  std::vector<Item> items;
};

/// Exit code of a worker whose planning thread crashed: its other leases are not suspected.
inline constexpr int kPlanningCrashed = 86;
/// The agent saw a worker's process end (waitpid).
struct WorkerExited {
  std::string node;
  std::uint32_t index = 0;
  std::uint64_t worker_incarnation = 0;  ///< 0 = died before it registered
  std::int32_t wait_status = 0;
};
/// The death is in the journal: the agent may forget it.
struct WorkerExitSeen {};
/// Scheduler to agent: kill this worker's process (SIGKILL); WorkerExited is the answer.
struct KillWorker {
  std::uint32_t index = 0;
  std::uint64_t worker_incarnation = 0;
};
/// A worker or an agent leaves: it finishes its running work and takes no more.
struct Drain {};
/// Nothing is leased to the sender of Drain any more: it may exit.
struct Drained {};

// ---------------------------------------------------------------- trainers

/// States of a slot. kFull: every shard of its batch counted. kResting: its batch moved to a spare
/// slot, and a worker may still write into it.
enum class SlotState : std::uint8_t { kFree, kFilling, kFull, kResting };
/// A trainer's slot as the trainer sees it: the truth after a scheduler restart.
struct SlotRow {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
  SlotState state = SlotState::kFree;
  std::uint32_t epoch = 0;  ///< epoch of the batch it holds, unless free
  std::uint64_t batch = 0;
  std::vector<std::uint32_t> counted;  ///< shards that are in
  bool operator==(const SlotRow&) const = default;
};

/// One rank joins a stream at a position and announces its ring. Also sent, with its slots, after a
/// reconnect, and when one of `holders` has ended.
struct AttachTrainer {
  std::uint64_t stream = 0;  ///< the stream job's id
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t first_epoch = 0;
  std::uint64_t first_batch = 0;
  std::uint64_t trainer_incarnation = 0;
  std::int64_t pid = 0;
  TrainerEndpoint endpoint;
  std::vector<SlotRow> slots;
  /// Worker processes that have the ring mapped and are not proven dead. Until the answer the ring
  /// is handed to no other.
  std::vector<std::int64_t> holders;
  std::vector<AssignedUnit> units;  ///< units that it is not done with
};
/// The answer to AttachTrainer. The trainer checks the digest against its own plan.
struct TrainerAttached {
  std::uint32_t scheduler_incarnation = 0;
  Digest plan_digest;
  StreamGeometry geometry;
};
/// Slots came back (first time or released): each may be granted for the next batch in order.
struct AnnounceSlots {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::vector<SlotRow> slots;
};
/// The trainer counted these shards: they are in memory and will not be made again.
struct ShardsCounted {
  /// A shard and the lease whose delivery counted.
  struct Item {
    LeaseNumber lease;
    ShardId shard;
    bool operator==(const Item&) const = default;
  };
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::vector<Item> items;
};
/// Connections and shards that a trainer's data path dropped since it attached, and why: the whole
/// list, again when it changed.
struct PeersDropped {
  /// The drops of one host for one reason.
  struct Item {
    std::string address;  ///< numeric, without a port: connections of one host count together
    std::string reason;
    std::uint64_t times = 0;
    std::int64_t last_at = 0;  ///< seconds since 1970
    bool operator==(const Item&) const = default;
  };
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::vector<Item> items;  ///< at most kMaxDroppedPeers
  bool operator==(const PeersDropped&) const = default;
};
/// Scheduler to trainer: this lease is void. Accept nothing more under it; report when its holder
/// can no longer write.
struct FenceShard {
  std::uint64_t stream = 0;
  LeaseNumber lease;
  ShardId shard;
  std::int64_t worker_pid = 0;  ///< 0 = the holder was remote
  Grant grant;                  ///< where the holder may still write
};
/// The range may be granted again: the holder is dead, its receive completed, or the batch moved to
/// a spare slot. `row` is the slot now filling that batch (the old one is kResting when the batch
/// moved).
struct ShardFenced {
  std::uint64_t stream = 0;
  LeaseNumber lease;
  ShardId shard;
  SlotRow row;
  bool already_counted = false;
};
/// Scheduler to trainer: the stream cannot go on (bad input, no workers of its numerics class,
/// cancelled).
struct StreamFailed {
  std::uint64_t stream = 0;
  Outcome outcome;
};
/// The rank is done with the stream: its ring is removed, and its leases are void.
struct DetachTrainer {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
};
/// The answer to DetachTrainer.
struct TrainerDetached {};
/// Scheduler to consumer: the units that it has. The consumer adds those that it did not know. As
/// the answer to AttachTrainer: the stream has ended with all units finished.
struct UnitsAssigned {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::vector<AssignedUnit> units;
  bool all_finished = false;  ///< every unit of the stream: it has ended
};
/// A consumer is done with a unit, or the unit failed alone.
struct FinishUnit {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::uint64_t unit = 0;
  Outcome outcome;
};
/// The unit is finished in the journal, whoever finished it first.
struct UnitFinished {};

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

// ---------------------------------------------------------------- the envelope

/// One of the messages. messages.cc alone has the code that copies, moves and destroys one: for so
/// many types it is half of what a file that includes this would compile.
struct Body
    : std::variant<
          Heartbeat, HeartbeatSeen, RequestFailed, RegisterAgent, AgentRegistered, RegisterWorker,
          WorkerRegistered, LeasesGranted, LeasesRevoked, FetchStream, StreamDescribed, RenewLeases,
          LeasesRenewed, TasksFinished, TasksCommitted, ShardsReturned, WorkerExited,
          WorkerExitSeen, KillWorker, Drain, Drained, AttachTrainer, TrainerAttached, AnnounceSlots,
          ShardsCounted, FenceShard, ShardFenced, StreamFailed, DetachTrainer, TrainerDetached,
          SubmitJob, JobSubmitted, DescribeJobs, JobsDescribed, FetchResult, ResultFetched,
          CancelJob, JobCancelled, RetryJob, JobRetried, FetchLogs, LogsFetched, DescribeCluster,
          ClusterDescribed, ReloadKeys, KeysReloaded, ShutDown, ShuttingDown, PutResultPart,
          ResultPartKept, PeersDropped, UnitsAssigned, FinishUnit, UnitFinished> {
  using variant::variant;
  Body();
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  ~Body();
};

/// One message. request_id pairs a command with its fact; 0 = unasked. A command repeated with the
/// same (sender_incarnation, request_id) has the effect of one.
struct Envelope {
  std::uint16_t version = kProtocolVersion;
  std::uint64_t sender_incarnation = 0;
  std::uint64_t request_id = 0;
  Body body;
};

}  // namespace patchbay::protocol
