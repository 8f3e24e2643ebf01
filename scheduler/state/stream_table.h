// Streams with their trainers, slots and shards. Rebuilt from the trainers' slot tables after a
// restart.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/ids.h"
#include "runtime/model/stream/image_runs.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/model/stream/unit_course.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/fair_share.h"
#include "scheduler/policy/solo_deaths.h"  // wide: a stream with all that it has
#include "scheduler/state/front_set.h"
#include "scheduler/state/id_set.h"
#include "scheduler/state/stream_past.h"

namespace patchbay::scheduler {

/// States and who moves them: scheduler/README.md.
enum class ShardState : std::uint8_t {
  kUnknown,  ///< after a restart: someone may still write it; being fenced at the trainer
  kPending,  ///< to be leased
  kLeased,   ///< held, or returned and not yet counted, or being fenced
  kCounted,
};

/// One shard of a batch that is being filled.
struct Shard {
  ShardState state = ShardState::kPending;
  LeaseNumber lease;  ///< while kLeased
  std::uint8_t attempts = 0;
  std::uint8_t void_attempts = 0;
  SoloDeaths solo_deaths;
  bool suspect = false;
  /// A worker ended while it made this suspect beside planning: the next one is to be empty.
  bool needs_empty_worker = false;
};

/// A shard to lease, by its batch.
using PendingShard = std::pair<Position, std::uint32_t>;

/// A batch that has a slot and is not complete.
struct Filling {
  std::uint32_t slot = 0;
  std::vector<Shard> shards;
  std::uint32_t counted = 0;
  bool chosen_here = false;  ///< this scheduler chose the slot, the trainer did not name it
};

/// A trainer's slot as the scheduler knows it; the trainer's own table is the truth.
struct Slot {
  /// Once its batch has left the slot: the generation with which it returns.
  std::uint64_t generation = 0;
  protocol::SlotState state = protocol::SlotState::kFree;
  Position at;                  ///< unless free
  std::uint32_t leases = 0;     ///< leases whose grant points here and that are not resolved
  std::uint64_t announced = 0;  ///< generation with which it returns once leases are resolved
  /// The trainer withholds this slot: nothing more is leased into it.
  bool rests = false;
};

/// Set by the silence of a trainer: suspended first, then forgotten.
enum class TrainerState : std::uint8_t {
  kAttached,
  kSuspended,  ///< silent: nothing is leased for it
  kForgotten,  ///< silent for longer: its leases are gone; it may attach again with its slots
};

/// One rank of a stream. Nothing of it is durable: it tells its slots when it attaches.
struct Trainer {
  JobId stream = 0;
  std::uint32_t rank = 0;
  TrainerState state = TrainerState::kAttached;
  std::uint64_t incarnation = 0;
  std::uint64_t peer = 0;
  std::int64_t pid = 0;
  TimeMs last_seen = 0;
  protocol::Heartbeat heard;  ///< its last one
  protocol::TrainerEndpoint endpoint;
  std::map<std::uint32_t, Slot> slots;
  std::set<std::uint32_t> free;  ///< slots that may be granted
  std::map<Position, Filling> filling;
  /// Shards to lease, lowest batch first.
  FrontSet<PendingShard, 1> pending;
  std::map<ShardId, TimeMs> unknown;  ///< shards being fenced after a restart: fence last sent
  FrontSet<LeaseNumber, 1> leases;    ///< every unresolved one that points into its slots
  TimeMs leases_due = 0;     ///< until then none of them is to be fenced, or waits too long
  TimeMs failing_since = 0;  ///< deliveries fail and none counted since; 0 = not so
  Position next;             ///< the first batch that was not given a slot yet
  std::set<Position> named;  ///< batches from `next` on that its ring had when it attached
  /// Processes that have its ring mapped and may write under leases of a former scheduler.
  std::set<std::int64_t> holders;
  IdSet makers;         ///< WorkerIds whose processes had a lease of it
  TimeMs taken_at = 0;  ///< it gave back a slot last; 0: none yet
  double step_ms = 0;   ///< moving average of the time between; 0: unknown
  bool behind = false;  ///< its ring and this table disagree: it is asked to attach again
  /// Batches from `next` on that a former scheduler may have leased.
  std::uint32_t batches_to_fence = 0;
  UnitCourse course;  ///< the units that it has

  /// Whether it has no full slot that it could take next.
  bool Waits(bool in_order) const;
};

/// The consumers of units; those that are finished are in the job.
struct UnitTable {
  std::map<std::uint64_t, std::uint32_t> holders;  ///< unit -> rank
  std::set<std::uint64_t> returned;                ///< given up by their consumer
  std::uint64_t fresh = 0;                         ///< the first that was never given away
  std::map<std::uint64_t, std::uint32_t> deaths;   ///< consumers that ended with the unit
};

/// A stream job with its plan and its ranks.
struct Stream {
  JobId job = 0;
  std::int32_t priority = 0;
  bool on_hold = false;
  AccountId account = kNoAccount;
  std::int64_t shard_us = 0;  ///< moving average of what a shard costs; 0: none was made
  StreamGeometry geometry;
  Numerics numerics = Numerics::kCpu;
  std::optional<Position> start;  ///< position where every rank begins; unset = anywhere
  std::string byte_versions;  ///< the plan's maker's: RegisterWorker::byte_versions of its workers
  std::set<std::uint32_t> seen;  ///< ranks that attached since this scheduler started
  Digest plan_digest;
  std::string plan, manifest;
  ImageRuns images;  ///< empty when patches of one image do not follow one another
  std::map<std::uint64_t, std::uint32_t> makers;  ///< image -> WorkerId that made its last shard
  std::deque<std::uint64_t> makers_order;         ///< images, the one known longest first
  std::map<std::uint32_t, Trainer> trainers;
  UnitTable units;
  /// Incarnations of replaced trainers, by rank.
  std::map<std::uint32_t, std::deque<std::uint64_t>> dead_incarnations;
  std::uint32_t leases = 0;  ///< held by workers
  LeaseNumber last_lease;    ///< granted last
  TimeMs empty_since = 0;    ///< no trainer since
  TimeMs starved_since = 0;  ///< since when no worker can make its shards; 0 = some can
  std::string waits_for;     ///< for messages; empty = no process can be named
  TimeMs waits_since = 0;
  std::uint64_t patches_made = 0;  ///< before its first trainer's position, and counted since
  TimeMs stalled_ms = 0;           ///< in which some trainer waited
  TimeMs looked_at = 0;            ///< when that was looked at last
  StreamPast past;

  /// Patches of the epochs that have begun, padding included.
  std::uint64_t PatchesTotal() const;
  /// Adds the time since the last look to the stall, if a trainer waits; says whether one does.
  bool LookForStall(TimeMs now);
};

/// The batch bound to the slot, if any, waits for the next free one.
void ForgetSlot(Trainer& trainer, std::uint32_t number);
/// Unbinds the batch of a slot that rests at the trainer, once no lease points into it.
void LeaveRestingIfClear(Trainer& trainer, std::uint32_t number);
/// A slot that was announced is free once no lease points into it. Says whether it became so.
bool FreeSlotIfClear(Trainer& trainer, std::uint32_t number);

/// Patches of the epochs and batches before it; of a stream without units.
std::uint64_t PatchesBefore(const StreamGeometry& geometry, Position at);

/// Reads a stream's root result (see PlannedStream). InvalidArgument when it is malformed or for
/// another number of ranks than the job's.
Status ReadStreamPlan(const std::string& result, std::uint32_t world_size, Stream& stream);

}  // namespace patchbay::scheduler
