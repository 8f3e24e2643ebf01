// What is inside Core. Each section below is one .cc file; state tables are in scheduler/README.md.
// Private to scheduler/core.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/core/core.h"
#include "scheduler/policy/affinity.h"
#include "scheduler/policy/limits.h"
#include "scheduler/policy/pace.h"
#include "scheduler/policy/ready_queue.h"
#include "scheduler/policy/resources.h"
#include "scheduler/state/cluster_table.h"
#include "scheduler/state/job_table.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// Lease counters are dense: they are their own hash.
struct LeaseHash {
  std::size_t operator()(const LeaseNumber& n) const {
    return static_cast<std::size_t>(n.counter ^ (static_cast<std::uint64_t>(n.incarnation) << 40));
  }
};

/// A worker process of a former incarnation's journal, until it is known to hold nothing of it.
struct Unaccounted {
  bool registered = false;  ///< it is back, and still holds `shards`
  std::set<LeaseNumber> shards;
  std::string host_identity;
  std::uint64_t worker_incarnation = 0, agent_incarnation = 0;
};

inline constexpr std::uint32_t kNotOpen = UINT32_MAX;

/// Under which keys a worker is in the open sets.
struct OpenKeys {
  std::uint32_t task = kNotOpen, shard = kNotOpen;
  int kind = 0;
};

/// One message being handled.
struct Request {
  PeerId peer = 0;
  const PeerIdentity* identity = nullptr;
  std::uint64_t sender_incarnation = 0;
  std::uint64_t request_id = 0;
};

struct JobLog {
  std::deque<protocol::LogsFetched::Line> lines;
  std::uint64_t next_sequence = 1;
};

/// A shard to lease, by its batch.
using PendingShard = std::pair<Position, std::uint32_t>;

/// What making a shard occupies of the worker's node.
Resources ShardNeed(const Worker& worker);

/// A stream that is to end once the event has been handled.
struct StreamEnd {
  JobId job = 0;
  JobState state = JobState::kFailed;
  protocol::Outcome outcome;
};

/// What a connection turned out to be.
struct Peer {
  PeerIdentity identity;
  WorkerId worker = kNoWorker;
  std::string agent_of;  ///< node name
  RankId trainer;        ///< stream 0 = none
};

struct Core::Machine {
  explicit Machine(const CoreOptions& o) : options(o) {}

  // -- core.cc: events in, records and answers out.
  void Start(Instant at, Actions& actions);
  void Receive(const Request& request, protocol::Body&& body);
  void Begin(Instant at, Actions& actions);
  /// Grants what can be granted and sends what was collected. Ends every event.
  void End();
  void Durable(std::uint64_t sequence);
  void Tick();
  /// Journals the record and applies it. The record must fit (a bug otherwise).
  void Emit(RecordBody&& body);
  void ActOn(Effects& effects);
  /// At once: for what promises nothing.
  void Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body);
  /// Once everything journalled so far is on disk.
  void SendDurable(PeerId peer, std::uint64_t request_id, protocol::Body&& body);
  /// Every answer, refusals too, is durable: whatever it rests on outlives a crash.
  void Answer(const Request& request, protocol::Body&& body);
  void Refuse(const Request& request, const Status& status);
  void LogLine(JobId job, std::string text);
  void MakeRunnable(const TaskId& id);
  void PeerGone(PeerId id);
  Status Check() const;

  // -- tasks.cc: batch tasks.
  void On(const Request& request, protocol::TasksFinished&& message);
  void On(const Request& request, protocol::PutResultPart&& message);
  /// Puts the parts that came before in front of the item's result. FailedPrecondition when they
  /// are not what the item follows.
  Status JoinParts(protocol::TasksFinished::Item& item);
  void FinishItem(Worker& worker, protocol::TasksFinished::Item&& item);
  void CommitTask(const TaskId& id, protocol::TasksFinished::Item&& item);
  Status CheckCommit(const Job& job, const protocol::TasksFinished::Item& item) const;
  void FailAttempt(const TaskId& id, protocol::Outcome&& outcome);
  void FailTask(const TaskId& id, protocol::Outcome&& outcome, bool quarantined);
  void Enqueue(const TaskId& id);
  void PushReady(const TaskId& id, Task& task);
  void DispatchTasks();
  void DispatchSolo();
  bool GrantNext(Worker& worker);
  std::size_t ChooseTask(const ReadyQueue::JobTasks& tasks, const Worker& worker);
  Kinship KinshipOf(const ReadyTask& entry, const Worker& worker);
  bool NodeHasRoom(Worker& worker, const Resources& need);
  void LeaseTask(Worker& worker, const ReadyTask& entry);
  void DropTaskLease(LeaseNumber number);
  void MeasureTasks(Worker& worker, const protocol::TasksFinished& message);
  bool Valid(const ReadyTask& entry);
  void FlushGrants(WorkerId id);
  protocol::TaskLease DescribeLease(const Lease& lease);

  // -- workers.cc: agents, workers, leases.
  void On(const Request& request, protocol::RegisterAgent&& message);
  void On(const Request& request, protocol::RegisterWorker&& message);
  void On(const Request& request, protocol::RenewLeases&& message);
  void On(const Request& request, protocol::WorkerExited&& message);
  void On(const Request& request, protocol::Drain&& message);
  Worker* WorkerOf(const Request& request);
  Node& NodeNamed(const std::string& name);
  Node& NodeOf(const Worker& worker) { return nodes.at(worker.node); }
  Worker* PlaceOnNode(Node& node, std::uint32_t index);
  void StartWorker(Worker& worker, const protocol::RegisterWorker& message);
  void Reoffer(Worker& worker, const std::vector<protocol::HeldLease>& held, bool moved);
  void AdoptTask(Worker& worker, const protocol::HeldLease& held);
  void WorkerDead(Worker& worker, bool counts);
  void Blame(const std::vector<LeaseNumber>& held, bool counts);
  void BlameTask(const TaskId& id, bool alone);
  void AccountFor(const WorkerPlace& place);
  void AgentRestarted(const std::string& node, std::uint64_t agent_incarnation);
  bool Recovering() const { return !unaccounted.empty() && now < recovery_until; }
  void TickWorkers();
  void TickRecovery();
  void ExpireLeases(Worker& worker);
  void Condemn(Worker& worker);
  void SendKill(Worker& worker);
  void FinishDrains(Worker& worker);
  void FinishNodeDrain(Node& node);
  void Unreserve();
  bool IsSuspect(const Worker& worker) const;
  bool CanLease(const Worker& worker) const;
  /// Puts the worker into the open sets it belongs in. Call after whatever changes that.
  void Reindex(Worker& worker);
  void Reassign(Worker& worker);
  LeaseNumber NextLease() { return {table.incarnation(), ++lease_counter}; }
  void Revoke(const Lease& lease);

  // -- streams.cc: trainers, and what they say of shards.
  void On(const Request& request, protocol::AttachTrainer&& message);
  void On(const Request& request, protocol::AnnounceSlots&& message);
  void On(const Request& request, protocol::ShardsCounted&& message);
  void On(const Request& request, protocol::ShardFenced&& message);
  void On(const Request& request, protocol::DetachTrainer&& message);
  void On(const Request& request, protocol::FetchStream&& message);
  /// The stream of a running job whose plan is there; opens it. A plan that cannot be read fails
  /// the job.
  StatusOr<Stream*> OpenStream(JobId id);
  Status CheckAttach(const Request& request, const protocol::AttachTrainer& message,
                     const Stream& stream);
  void AttachFresh(Stream& stream, const protocol::AttachTrainer& message);
  void CatchUp(Stream& stream, Trainer& trainer, const protocol::AttachTrainer& message);
  void DescribeToWorkers(const Stream& stream);
  protocol::StreamDescribed Describe(const Stream& stream);
  Trainer* TrainerOf(const Request& request, JobId stream, std::uint32_t rank);
  bool NamesAnother(const Trainer& trainer, const protocol::ShardFenced& message) const;
  void TakeMove(Stream& stream, Trainer& trainer, const protocol::ShardFenced& message);
  void LeaveSlot(Trainer& trainer, Filling& filling, std::uint32_t to);
  void MoveFilling(Trainer& trainer, Filling& filling, const protocol::SlotRow& row);
  /// The trainer has the shard; `lease` = under which lease it says so, null = all it takes.
  void Count(Stream& stream, Trainer& trainer, const ShardId& id, const LeaseNumber* lease);
  void ForgetTrainer(Trainer& trainer);
  void DropTrainer(Stream& stream, std::uint32_t rank);
  void EndStream(JobId job, JobState state, protocol::Outcome&& outcome);
  void CloseStream(const Job& job);
  void KeyRevoked(const std::string& name);
  void TickStreams();
  void TickTrainer(Stream& stream, Trainer& trainer);

  // -- slots.cc: a trainer's slots.
  void TakeRow(Stream& stream, Trainer& trainer, const protocol::SlotRow& row);
  bool BoundLate(const Trainer& trainer, const protocol::SlotRow& row) const;
  void ForgetSlot(Trainer& trainer, std::uint32_t number);
  void TakeFree(Stream& stream, Trainer& trainer, const protocol::SlotRow& row);
  void TakeResting(Trainer& trainer, const protocol::SlotRow& row);
  void LeaveRestingIfClear(Trainer& trainer, std::uint32_t slot);
  void FreeSlotIfClear(Trainer& trainer, std::uint32_t slot);
  void TakeFilling(Stream& stream, Trainer& trainer, const protocol::SlotRow& row);
  Filling& OpenFilling(Stream& stream, Trainer& trainer, Position at, std::uint32_t slot,
                       bool unknown);
  void SendUnknownFence(Stream& stream, Trainer& trainer, const ShardId& id);
  void CutGrants(Stream& stream, Trainer& trainer);

  // -- shards.cc: making shards.
  void On(const Request& request, protocol::ShardsReturned&& message);
  void ReturnShard(Worker& worker, const protocol::ShardsReturned::Item& item);
  void ShardFailed(const LeaseNumber& number, WorkerId worker, protocol::Outcome outcome);
  void DispatchShards();
  bool DispatchOneShard(Stream& stream);
  const PendingShard* NextPending(const Trainer& trainer) const;
  Worker* PickWorker(const Stream& stream, const Trainer& trainer, bool solo);
  /// The worker that made the image's last shard, if it may take one more; else `least`.
  Worker& Prefer(Stream& stream, const Trainer& trainer, const ShardId& id, Worker& least);
  bool StaysEvenWith(const Worker& worker, const Trainer& trainer);
  bool MayMake(Worker& worker, const Stream& stream, const Trainer& trainer, bool solo);
  bool IsLocal(const Worker& worker, const Trainer& trainer) const;
  bool GrantsAllowed(const Trainer& trainer) const;
  void LeaseShard(Stream& stream, Trainer& trainer, const ShardId& id, Worker& worker);
  void LeaveWorker(Lease& lease);
  /// The lease is void: the trainer is asked to make sure that nobody writes under it. `pid` = who
  /// might on the trainer's host, 0 = nobody.
  void Fence(Lease& lease, std::int64_t pid);
  void TakeBack(Lease& lease);
  void TickRevoking(Lease& lease);
  void SendFence(Lease& lease);
  /// Nobody writes under the lease any more: it is gone, and its shard is to be made again unless
  /// it counted.
  void Resolve(LeaseNumber number);
  void CheckStarved(Stream& stream);
  bool IsStarved(const Stream& stream) const;
  bool NoNodeOffers(protocol::Numerics numerics) const;
  Status WhyStarved(const Stream& stream) const;
  Trainer* FindTrainer(const RankId& id);
  Shard* FindShard(const Lease& lease);

  // -- users.cc
  void On(const Request& request, protocol::Heartbeat&& message);
  void On(const Request& request, protocol::SubmitJob&& message);
  void On(const Request& request, protocol::DescribeJobs&& message);
  void On(const Request& request, protocol::FetchResult&& message);
  void On(const Request& request, protocol::CancelJob&& message);
  void On(const Request& request, protocol::RetryJob&& message);
  void On(const Request& request, protocol::FetchLogs&& message);
  void On(const Request& request, protocol::DescribeCluster&& message);
  void On(const Request& request, protocol::ReloadKeys&& message);
  void On(const Request& request, protocol::ShutDown&& message);
  template <typename Other>
  void On(const Request&, Other&&) {}
  /// Null, and refused, when the peer may not see the job.
  Job* VisibleJob(const Request& request, JobId id);
  protocol::JobRow Row(const Job& job, std::size_t failed_max) const;
  std::vector<protocol::JobRow> RecentRows(const PeerIdentity& identity) const;

  // -- durable state and the journal
  const CoreOptions options;
  JobTable table;
  std::uint64_t last_sequence = 0, durable = 0;
  std::deque<std::pair<std::uint64_t, TaskId>> gated_tasks;  ///< runnable once durable
  std::deque<std::pair<std::uint64_t, SendAction>> gated_sends;
  std::deque<std::pair<std::uint64_t, WorkerId>> gated_workers;  ///< may be leased to once durable
  std::uint64_t start_sequence = 0;  ///< nothing is leased before it is durable

  // -- the event being handled
  TimeMs now = 0;
  std::int64_t wall = 0;
  Actions* out = nullptr;
  std::map<WorkerId, protocol::LeasesGranted> grants;
  std::map<WorkerId, std::size_t> grant_bytes;
  std::map<WorkerId, std::vector<LeaseNumber>> revokes;
  std::vector<StreamEnd> ending;

  // -- the cluster
  std::unordered_map<PeerId, Peer> peers;
  std::map<std::string, Node> nodes;
  std::map<std::string, std::set<std::string>> hosts;  ///< node names by host identity
  std::deque<Worker> workers;
  std::unordered_map<LeaseNumber, Lease, LeaseHash> leases;
  std::uint64_t lease_counter = 0;
  std::set<std::pair<std::uint32_t, WorkerId>> task_open;      ///< by load
  std::set<std::pair<std::uint32_t, WorkerId>> shard_open[2];  ///< by load; [numerics class]
  std::vector<OpenKeys> open_keys;                             ///< of each worker
  std::set<WorkerId> dirty_workers;                            ///< freed since the last dispatch
  WorkerId reserved = kNoWorker;
  /// Workers the journal knows and this incarnation has not heard of, and what they still hold.
  std::map<WorkerPlace, Unaccounted> unaccounted;
  TimeMs recovery_until = 0;
  TimeMs recovery_kill_at = 0;    ///< next KillWorker for who did not come back
  std::vector<TaskId> held_back;  ///< ready tasks of the former incarnation
  bool had_workers = false;       ///< a former incarnation's leases may be about

  // -- tasks
  ReadyQueue ready;
  std::deque<ReadyTask> solo_ready;
  std::set<std::pair<TimeMs, TaskId>> delayed;  ///< waiting for their next attempt
  bool pushed_ready = false;
  std::uint32_t next_stamp = 1;
  TaskPace task_pace;
  std::map<JobId, JobLog> logs;

  // -- streams
  std::map<JobId, Stream> streams;
  bool shards_changed = false;

  CoreGauges counters;
};

}  // namespace patchbay::scheduler
