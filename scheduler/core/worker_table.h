// Nodes, the workers on them, what they occupy, and who may be given more. Private to
// scheduler/core.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/policy/resources.h"
#include "scheduler/state/cluster_table.h"

namespace patchbay::scheduler {

/// Workers that may be given more, by what they hold.
using OpenWorkers = std::set<std::pair<std::uint32_t, WorkerId>>;

/// Resources of the worker's node that making a shard occupies.
Resources ShardNeed(const Worker& worker);

/// Invariants: a worker's id is its index and its node lists it, unless that is forgotten; it fits
/// itself what it occupies, and a node what its workers occupy, planning included; a worker that is
/// unheard goes on occupying what it did; a worker without leases has nothing queued, a dead one
/// has no leases, one with a suspect has nothing beside it; a worker is in the open sets exactly
/// under what it holds; at most one is reserved; queues are bounded.
class WorkerTable {
 public:
  WorkerTable(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier)
      : event_(event), options_(options), barrier_(barrier) {}

  Worker& at(WorkerId id) { return workers_[id]; }
  const Worker& at(WorkerId id) const { return workers_[id]; }
  std::deque<Worker>& workers() { return workers_; }
  const std::deque<Worker>& workers() const { return workers_; }
  std::map<std::string, Node>& nodes() { return nodes_; }
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  /// Places on nodes, whether a process fills them or not.
  std::size_t places() const { return workers_.size() - unused_.size(); }
  Node& NodeOf(const Worker& worker) { return nodes_.at(worker.node); }
  /// Adds it if need be; the caller minds kMaxNodes.
  Node& NodeNamed(const std::string& name);
  /// The place on the node, whichever process fills it; adds it if need be.
  Worker& PlaceOn(Node& node, std::uint32_t index);
  /// The node has left and holds nothing: nobody may name its workers any more, whose ids are given
  /// to others.
  void Forget(const std::string& name);
  void SetHost(Node& node, std::string&& host_identity);
  /// Names of the nodes of that host; null when there is none.
  const std::set<std::string>* NodesOnHost(const std::string& host_identity) const;
  /// The worker shares memory with the trainer.
  bool IsLocal(const Worker& worker, const protocol::TrainerEndpoint& trainer) const;

  /// Silent for too long: gets no new leases.
  bool IsSuspect(const Worker& worker) const;
  bool CanLease(const Worker& worker) const;
  /// Whether worker and node can carry this worker at `need` beside the planning of all, and what
  /// memory is kept for that. A node that does nothing else may give all that its planning leaves.
  bool NodeHasRoom(Worker& worker, const Resources& need);
  /// Whether they can carry planning of that need beside all else. Planning takes memory alone: it
  /// shares the worker's cores.
  bool HasRoomToPlan(Worker& worker, const Resources& need);
  /// May be given leases, and has no suspect and none to wait for, as of its last Reindex.
  bool MayTakeMore(WorkerId id) const { return open_keys_[id].may; }
  /// The process lives, and what it runs is not known: it is to be killed, or has no connection on
  /// which it could be told what to drop.
  static bool IsUnheard(const Worker& worker) {
    return worker.state == WorkerState::kCondemned ||
           (worker.state != WorkerState::kGone && worker.peer == 0);
  }
  /// Puts the worker into the open sets it belongs in. Call after whatever changes that.
  void Reindex(Worker& worker);
  void ReindexNode(Node& node);
  /// The worker's leases changed: what it occupies, and what it may be given.
  void Reassign(Worker& worker);
  /// A suspect waits for the worker: it gets nothing until it is empty, and its node keeps `need`
  /// free for it. Until the next tick but one, unless said again. Does nothing while another is
  /// reserved.
  void Reserve(Worker& worker, const Resources& need);
  /// Does nothing when it is not reserved.
  void Unreserve(Worker& worker);
  void TickReserved();
  /// Null when there is none, or it may be given nothing now.
  Worker* Reserved();

  const OpenWorkers& open_for_tasks() const { return task_open_; }
  const OpenWorkers& open_for_planning() const { return planning_open_; }
  /// [numerics class]
  const OpenWorkers (&open_for_shards() const)[2] { return shard_open_; }
  bool IsOpenForTasks(WorkerId id) const { return open_keys_[id].task != kNotOpen; }
  bool IsOpenForPlanning(WorkerId id) const { return open_keys_[id].planning != kNotOpen; }
  bool IsOpenForShards(WorkerId id) const { return open_keys_[id].shard != kNotOpen; }
  bool AnyFreed() const { return !freed_.empty(); }
  /// Workers that became freer since they were taken last.
  std::set<WorkerId> TakeFreed() { return std::exchange(freed_, {}); }

  Status Check() const;

 private:
  static constexpr std::uint32_t kNotOpen = UINT32_MAX;
  /// Under which keys a worker is in the open sets.
  struct OpenKeys {
    std::uint32_t task = kNotOpen, shard = kNotOpen, planning = kNotOpen;
    int kind = 0;
    bool may = false;
  };
  /// Workers of a forgotten node that were declared dead, which need not be true: they stay out if
  /// the node comes back.
  struct Forgotten {
    std::string name;
    std::deque<std::uint64_t> agents, workers;
  };
  void Recall(Node& node);
  void LeaveHost(const Node& node);
  /// Needs of the worker's leases; for a worker that is unheard, also of the leases it held before.
  Resources Occupied(const Worker& worker) const;
  /// Memory that its planning takes, likewise.
  std::uint64_t PlanningBytes(const Worker& worker) const;
  /// Memory of the node that its batch tasks leave free, in the eyes of this worker.
  static std::uint64_t KeptForPlanning(const Node& node, const Worker& worker);
  /// Resources of the node that the reserved worker does not occupy yet.
  Resources KeptForReserved(const Node& node, const Worker& worker) const;
  void ReindexPlanning(const Worker& worker, bool may);
  Status CheckWorker(const Worker& worker) const;
  Status CheckNode(const Node& node) const;

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::set<std::string>> hosts_;  ///< node names by host identity
  std::deque<Worker> workers_;       ///< workers of forgotten nodes are blank: node ""
  std::vector<WorkerId> unused_;     ///< ids of those
  std::deque<Forgotten> forgotten_;  ///< at most kMaxForgottenNodes, the oldest first
  OpenWorkers task_open_, planning_open_, shard_open_[2];
  std::vector<OpenKeys> open_keys_;  ///< of each worker
  std::set<WorkerId> freed_;
  WorkerId reserved_ = kNoWorker;
  Resources reserved_need_;
  bool reserved_again_ = false;  ///< since the last tick
};

}  // namespace patchbay::scheduler
