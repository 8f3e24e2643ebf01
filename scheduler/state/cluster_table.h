// Nodes, workers and leases: the running scheduler's view of the cluster. Only the existence of
// worker processes is durable (JobTable::known_workers).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/ids.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/holders.h"
#include "scheduler/policy/pace.h"
#include "scheduler/policy/resources.h"
#include "scheduler/state/front_set.h"
#include "scheduler/state/id_set.h"

namespace patchbay::scheduler {

/// Index into ClusterTable::workers; a place on a node, whichever process fills it.
using WorkerId = std::uint32_t;
inline constexpr WorkerId kNoWorker = UINT32_MAX;

/// States and who moves them: scheduler/README.md.
enum class WorkerState : std::uint8_t {
  kGone,       ///< no process, or proven dead
  kUp,         ///< may be given leases (unless its node is suspect)
  kDraining,   ///< finishes its leases
  kCondemned,  ///< a lease of it expired: its agent is to kill it
};

/// A stream and one of its ranks.
struct RankId {
  JobId stream = 0;
  std::uint32_t rank = 0;
  auto operator<=>(const RankId&) const = default;
};

/// The batch tasks that a worker holds for one of its two threads: planning, and all else.
struct LaneLoad {
  std::uint32_t tasks = 0;
  std::int64_t queued_us = 0;
  TimeMs busy_since = 0;
  Occupancy occupancy;  ///< shards are among all else
};

/// A place on a node and the process that fills it now. Not durable: workers tell it again. The
/// members that each grant needs come first: of thousands of workers, none is in a cache.
struct Worker {
  WorkerId id = kNoWorker;
  WorkerState state = WorkerState::kGone;
  bool sends_heartbeats = false;
  bool reserved = false;      ///< see WorkerTable::Reserve
  bool cost_clipped = false;  ///< said once: it reports costs that its leases have no time for
  Numerics numerics = Numerics::kCpu;
  struct Node* home = nullptr;       ///< the node of that name
  std::uint64_t peer = 0;            ///< 0 = not connected
  std::uint64_t known_sequence = 0;  ///< the record of its existence
  std::uint64_t incarnation = 0, agent_incarnation = 0;
  std::int64_t pid = 0;
  TimeMs last_seen = 0;
  TimeMs shard_since = 0;
  TimeMs progress_at = 0;  ///< last report of progress
  TimeMs next_expiry = 0;  ///< none of its leases expires earlier
  ShardPace shard_pace;
  /// The suspect that it runs: alone, or a shard beside planning. It gets nothing else meanwhile.
  LeaseNumber suspect;
  protocol::Resources capacity{0, 0, 0}, assigned{0, 0, 0};  ///< without its planning
  std::uint64_t planning_bytes = 0;                          ///< memory for its planning
  LaneLoad work, planning;
  LeaseSet shards, tasks;  ///< held leases; those of a lane run in this order
  Holders holders;         ///< accounts of its leases; planning is nobody's
  std::uint64_t tasks_done = 0, shards_done = 0;

  std::string byte_versions;  ///< versions of its code; it makes shards only of plans with the same
  std::map<RankId, TimeMs> barred;      ///< until
  std::set<LeaseNumber> former_shards;  ///< granted by a former scheduler, not dropped yet
  std::string node;
  std::uint32_t index = 0;
  TimeMs kill_sent = 0;
  std::uint64_t drain_peer = 0, drain_request = 0;
  std::deque<std::uint64_t> dead_incarnations;
  std::set<JobId> streams_fetched;

  LaneLoad& LaneOf(bool plans) { return plans ? planning : work; }
  /// It may be minutes until it is empty.
  bool IsPlanning() const { return planning.tasks != 0; }
  bool RunsSuspect() const { return suspect != LeaseNumber{}; }
};

/// Resources of the worker's node that making a shard occupies.
inline Resources ShardNeed(const Worker& worker) {
  return {std::min<std::uint32_t>(worker.capacity.cpu_millis, 1000),
          worker.numerics == Numerics::kCuda ? std::min(worker.capacity.gpus, 1u) : 0, 0};
}

/// Incarnations known to be dead are remembered for a while: their late messages are void.
inline bool Contains(const std::deque<std::uint64_t>& incarnations, std::uint64_t one) {
  return std::find(incarnations.begin(), incarnations.end(), one) != incarnations.end();
}
inline void Remember(std::deque<std::uint64_t>& incarnations, std::uint64_t one) {
  incarnations.push_back(one);
  if (incarnations.size() > kMaxDeadIncarnations) incarnations.pop_front();
}

/// A machine with its agent; kept while it is away, forgotten after a grace.
struct Node {
  std::string name, host_identity, host_name;
  std::uint64_t agent = 0;  ///< its agent's connection, 0 = none
  std::uint64_t agent_incarnation = 0;
  bool registered = false, draining = false;
  bool drained = false;  ///< by an operator, in the journal
  std::uint64_t drain_request = 0;
  TimeMs last_seen = 0;
  std::uint32_t cpus = 0;
  std::vector<protocol::Gpu> gpus;
  std::uint64_t memory_bytes = 0;  ///< resident memory of its workers, by its last heartbeat
  protocol::Resources capacity{0, 0, 0}, assigned{0, 0, 0};  ///< without planning
  std::uint64_t planning_bytes = 0;                          ///< planning_bytes of all its workers
  bool refused = false;  ///< a worker was skipped because the node was full
  std::map<std::uint32_t, WorkerId> workers;
  IdSet ids;  ///< the same WorkerIds
  std::deque<std::uint64_t> dead_incarnations;
  std::deque<std::uint64_t> dead_workers;  ///< incarnations from before the node was forgotten
};

/// The state of a shard lease.
enum class ShardPhase : std::uint8_t {
  kMaking,    ///< the worker has it
  kReturned,  ///< reported as delivered by the worker, not yet counted by the trainer
  kRevoking,  ///< taken back from a live worker, which has not confirmed yet
  kFencing,   ///< void; the trainer has not yet confirmed that no process can write under it
};

/// The right of one worker to one batch task or one shard.
struct Lease {
  LeaseNumber number;
  WorkerId worker = kNoWorker;
  std::uint64_t worker_incarnation = 0;
  std::int64_t worker_pid = 0;  ///< 0 = the holder was on another node than the trainer
  TimeMs granted_at = 0, deadline = 0;
  std::uint64_t progress = 0;
  std::optional<protocol::WorkCost> cost;  ///< once its worker reported it
  bool is_shard = false;
  AccountId account = kNoAccount;  ///< charged for it; of planning none
  std::int64_t estimate_us = 0;    ///< processor time that it is charged until its end
  // A batch task's.
  TaskId task;
  RunningCost running;
  std::int64_t charged_us = 0;  ///< part of its cost, before its end
  bool planning = false;        ///< true: in the worker's planning lane
  std::int64_t queued_us = 0;   ///< time that it is expected to take
  std::string result_parts;     ///< pieces put before TasksFinished
  // A shard's.
  JobId stream = 0;
  ShardId shard;
  Grant grant;
  ShardPhase phase = ShardPhase::kMaking;
  TimeMs phase_at = 0;     ///< when it was returned, or the fence was last sent
  TimeMs revoke_sent = 0;  ///< while revoking
};

}  // namespace patchbay::scheduler
