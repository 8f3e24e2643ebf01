// Every control message as a plain struct. patchbay.capnp is the specification of the same messages
// on the wire; codec.h turns one into the other. Sequence: runtime/wire/protocol/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/outcome.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/stage_times.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/model/stream/unit_course.h"
#include "runtime/wire/protocol/shared_values.h"
#include "runtime/wire/protocol/user_messages.h"  // wide: every message

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

// ---------------------------------------------------------------- any peer

/// Sent by agents and trainers from a thread that does no task work, about every 500 ms.
struct Heartbeat {
  std::uint64_t progress = 0;
  std::uint64_t wait_p50_us = 0, wait_p99_us = 0;  ///< a trainer's, for a batch from the second on
  std::uint64_t memory_bytes = 0;  ///< resident: of an agent's workers, of a trainer's process
  /// An agent's: indices of workers that it has not heard for a second. It speaks for the others.
  std::vector<std::uint32_t> silent = {};
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
    std::int64_t cpu_us = 0;  ///< processor time of the task that runs under it, so far; else 0
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
    WorkCost cost = {};
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
    WorkCost cost = {};
    StageTimes stages = {};
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

}  // namespace patchbay::protocol
