// A cluster in virtual time around the real scheduler core: agents, workers, trainers and clients
// that behave as the protocol says, a network and machines that do not. One seed decides
// everything; the same seed gives the same run, event for event.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/random.h"
#include "runtime/wire/data/slot_table.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/core/core.h"
#include "scheduler/policy/resources.h"
#include "scheduler/state/records.h"

namespace patchbay::sim {

using protocol::Body;
using protocol::LeasesGranted;
using protocol::ShardLease;
using protocol::TaskLease;

/// Draws that depend on the seed and on how many came before.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t Below(std::uint64_t n);
  bool Chance(double p) { return Below(1u << 30) < p * (1u << 30); }
  TimeMs Between(TimeMs least, TimeMs most) {
    return least + static_cast<TimeMs>(Below(static_cast<std::uint64_t>(most - least + 1)));
  }

 private:
  std::uint64_t seed_, count_ = 0;
};

/// Faults of this run, and how often each happens. Drawn from the seed.
struct Faults {
  double loss = 0, duplicate = 0;
  TimeMs delay_max_ms = 2;
  TimeMs worker_crash_ms = 0, agent_crash_ms = 0, scheduler_crash_ms = 0;  ///< mean; 0 = never
  TimeMs trainer_crash_ms = 0, freeze_ms = 0, partition_ms = 0, reconnect_ms = 0;
  double delivery_failure = 0;
  TimeMs disk_ms = 2;
  TimeMs away_ms = 3000;             ///< the scheduler after a crash, at most
  TimeMs sweep_ms = 0;               ///< mean until all workers end at once, then the scheduler
  TimeMs frozen_ms = 0;              ///< or up to 1 s longer; 0 = drawn anew each time
  bool freezes_busy = false;         ///< workers that have shards, where there are any
  double agent_freezes_too = 0.3;    ///< when its worker does
  double crash_while_fencing = 0.3;  ///< the scheduler's chance, when a fence waits for proof
  TimeMs fence_crash_ms = 1900;      ///< delay of that crash, at most
  double cancelled = 0.15;           ///< share of the jobs
  double tried_again = 0;            ///< share of the batch jobs, whatever they ended as
  TimeMs command_ms = 1000;          ///< between a client's requests about a job
  // The cluster and the work that the faults meet.
  std::uint64_t nodes_least = 1;
  double streams = 0.5;        ///< share of the jobs
  std::uint64_t batches = 30;  ///< spread of the number of batches that a trainer takes
  double heavy = 0;            ///< share of batch jobs with tasks that take a while, of all sizes
  TimeMs vanish_ms = 0;        ///< mean until some of everything ends at once; some for good
  std::uint64_t hosts = 0;     ///< shared by the nodes; 0 = one each
};

/// How often each fault happened, for the coverage table.
using Coverage = std::map<std::string, std::uint64_t>;

struct RunResult {
  std::uint64_t seed = 0;
  std::string violation;  ///< empty = none
  std::uint64_t trace_hash = 0, events = 0, tasks = 0, batches = 0, records = 0;
  Coverage coverage;
};

struct RunOptions {
  std::uint64_t seed = 1;
  bool trace = false;   ///< every event on stderr
  bool large = false;   ///< hundreds of workers
  bool calm = false;    ///< no faults except those enabled below
  bool lean = false;    ///< faults lean towards those that once found a bug
  bool ghosts = false;  ///< processes end and some come back; no other faults
  bool maps = false;    ///< streams have units and consumers of any number
  bool costs = false;   ///< workers report costs
  bool teams = false;   ///< several users of teams whose policy changes
  /// The scheduler crashes when it emits this record: after the messages sent with it, before the
  /// record is on disk. 0 = never.
  std::uint64_t crash_at_record = 0;
};

RunResult RunSeed(const RunOptions& options);

class World;

/// Something with a connection to the scheduler.
struct Actor {
  int id = 0;
  scheduler::PeerIdentity identity;
  int node = -1;  ///< for partitions; -1 = beside the scheduler
  int host = -1;  ///< shares memory with processes of this host
  bool alive = true;
  std::uint32_t life = 0;  ///< rises with every crash: events of an old life are dropped
  std::uint32_t connection = 0;
  TimeMs frozen_until = 0;
  TimeMs mute_since = 0;  ///< frozen or cut off since; 0 = not so
  TimeMs well_since = 0;  ///< it lives, and nothing keeps it from the scheduler
  std::function<void(Body&&, std::uint64_t request)> receive;
};

struct SimWorker {
  Actor actor;
  std::uint32_t index = 0;
  protocol::Resources capacity;
  Numerics numerics = Numerics::kCpu;
  std::uint64_t incarnation = 0, agent_incarnation = 0;
  std::int64_t pid = 0;
  std::uint32_t scheduler_incarnation = 0;  ///< 0 = not registered
  std::uint32_t newest_scheduler = 0;       ///< incarnation that it registered with
  std::set<LeaseNumber> offered;            ///< when it registered last
  protocol::LeasesGranted early;            ///< came since, before the answer
  /// By trainer incarnation: the scheduler incarnation of the lease it mapped the ring for.
  std::map<std::uint64_t, std::uint32_t> rings;
  TimeMs mapping_since = 0;  ///< when it began to ask a trainer for its ring; 0 = it does not ask
  /// One of its threads: its queue, and its running task.
  struct Lane {
    std::deque<TaskLease> tasks;
    LeaseNumber running;  ///< {0, 0} = idle
    std::uint64_t progress = 0;
    bool hangs = false;
  };
  Lane work, planning;
  std::deque<ShardLease> shards;  ///< made by the first of them
  std::set<LeaseNumber> seen;
  std::map<LeaseNumber, protocol::TasksFinished::Item> finished;

  Lane& LaneOf(const TaskLease& lease) { return lease.planning ? planning : work; }
};

struct SimAgent {
  Actor actor;
  std::string name;
  protocol::Resources capacity;
  std::uint64_t incarnation = 0;
  std::uint32_t scheduler_incarnation = 0;
  std::vector<std::unique_ptr<SimWorker>> workers;
  bool gone = false;                                      ///< for good
  std::map<std::uint64_t, protocol::WorkerExited> exits;  ///< not yet seen by the scheduler
};

struct SimTrainer {
  Actor actor;
  JobId stream = 0;
  std::uint32_t rank = 0, world_size = 1;
  std::uint64_t incarnation = 0;
  std::uint32_t scheduler_incarnation = 0;
  StreamGeometry geometry;
  std::unique_ptr<data::SlotTable> table;
  std::map<std::pair<std::uint32_t, std::uint64_t>, ShardId> memory;  ///< by slot and offset
  std::map<std::uint32_t, std::uint64_t> taken;                       ///< slot -> generation
  std::vector<std::pair<std::int64_t, std::uint32_t>> proofs;         ///< pid, resting slot
  std::set<std::int64_t> holders, named_holders;  ///< holders of its ring; as the last attach said
  std::set<std::int64_t> barred;                  ///< fenced without a mapping: they get none
  bool admits = false;                            ///< hands the ring out
  std::uint32_t admits_since = 0;                 ///< for leases of that scheduler and later ones
  std::uint64_t attach_request = 0;               ///< the last one
  TimeMs attach_at = 0;
  TimeMs counted_at = 0;   ///< a shard came last
  TimeMs progress_at = 0;  ///< so did a shard or batch, or it wanted none
  Position next;
  std::uint64_t consumed = 0, wanted = 0;
  std::deque<Position> history;  ///< positions of the last batches taken
  TimeMs step_ms = 60;           ///< longest time it trains on a batch
  bool detached = false;
  std::string failure;  ///< why it gave up; empty = it has not
  // A consumer of units.
  bool is_consumer = false;
  bool leaves = false;                              ///< detaches, and may start over
  std::map<std::uint64_t, std::uint64_t> taken_of;  ///< unit begun -> its next batch
  std::map<std::uint64_t, std::int32_t> to_finish;  ///< unit -> code, until it is answered
};

struct SimJob {
  std::uint64_t number = 0;
  std::string key, kind, payload, manifest;
  std::string reason;  ///< reason of the first failure
  std::int32_t priority = 0;
  std::size_t user = 0;  ///< number of its submitter
  std::uint32_t world_size = 1;
  std::uint64_t wanted_batches = 0;
  JobId id = 0;
  protocol::JobState state = protocol::JobState::kQueued;
  protocol::JobState expected = protocol::JobState::kDone;
  std::string numerics = "cpu";
  bool started = false;
  bool bad_shard = false;  ///< one of its shards cannot be had
  bool has_units = false;  ///< a stream of which consumers take whole units
  TimeMs cancel_at = 0;    ///< 0 = never
  bool cancel_sent = false, cancelled = false;
  bool retry = false;     ///< once it has ended, its failed tasks are tried again
  unsigned commands = 0;  ///< carried out: answers to earlier questions are old
};

}  // namespace patchbay::sim
