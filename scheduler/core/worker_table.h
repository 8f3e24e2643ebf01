// Nodes, the workers on them, the resources that they occupy, and the workers that may be given
// more. Private to scheduler/core.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/policy/resources.h"
#include "scheduler/state/cluster_table.h"
#include "scheduler/state/open_workers.h"

namespace patchbay::scheduler {

/// Invariants: a worker's id is its index, and its node lists it unless the node is forgotten; the
/// occupied resources fit the worker, and those of its workers fit the node, planning included; an
/// unheard worker keeps its resources occupied; a worker without leases has nothing queued, a dead
/// one has no leases, one with a suspect has no other lease, but of planning beside a shard; a
/// worker is in the open sets exactly under its present keys; at most one is reserved; queues are
/// bounded.
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
  /// The number of worker places on nodes, with or without a process.
  std::size_t places() const { return workers_.size() - unused_.size(); }
  Node& NodeOf(const Worker& worker) const { return *worker.home; }
  /// The node of that name, added if new; the caller checks kMaxNodes.
  Node& NodeNamed(const std::string& name);
  /// The worker place of that index on the node, whatever process fills it; added if new.
  Worker& PlaceOn(Node& node, std::uint32_t index);
  /// Removes a node that has left and holds nothing. Its workers' ids are reused, so nothing may
  /// refer to them any more.
  void Forget(const std::string& name);
  void SetHost(Node& node, std::string&& host_identity);
  /// The nodes of that host, by name; null when there is none.
  using Nodes = std::map<std::string, Node*>;
  const Nodes* NodesOnHost(const std::string& host_identity) const;
  /// FailedPrecondition for a trainer that no worker on its host shares memory with, and none can
  /// reach over the network.
  Status CheckReach(const protocol::TrainerEndpoint& endpoint, JobId stream) const;
  /// Whether the worker shares memory with the trainer.
  bool IsLocal(const Worker& worker, const protocol::TrainerEndpoint& trainer) const;

  /// Whether the worker was silent for too long, and so gets no new leases.
  bool IsSuspect(const Worker& worker) const;
  bool CanLease(const Worker& worker) const;
  /// Whether worker and node have room for this worker at `need`, in addition to the planning of
  /// all workers and the memory reserved for it. A node that does nothing else may give all memory
  /// that its planning leaves.
  bool NodeHasRoom(Worker& worker, const Resources& need);
  /// Whether worker and node have room for planning of that need in addition to everything else.
  /// Planning takes only memory: it shares the worker's cores.
  bool HasRoomToPlan(Worker& worker, const Resources& need);
  /// Whether the worker may be given leases, runs no suspect and is not reserved for one, as of its
  /// last Reindex.
  bool MayTakeMore(WorkerId id) const { return open_keys_[id].may; }
  /// Whether the process lives but its work is unknown: it is to be killed, or has no connection
  /// over which it could be told to drop leases.
  static bool IsUnheard(const Worker& worker) {
    return worker.state == WorkerState::kCondemned ||
           (worker.state != WorkerState::kGone && worker.peer == 0);
  }
  /// Puts the worker into the open sets that it belongs to. Call after every change that affects
  /// them, but for the passing of time.
  void Reindex(Worker& worker);
  /// At that time, at the latest, the passing of time changes what the worker may be given or has.
  void LookBy(WorkerId id, TimeMs at) { look_at_[id] = std::min(look_at_[id], at); }
  /// Whether that time has come; it is then to be named again.
  bool TakeDue(WorkerId id) {
    if (look_at_[id] > event_.now) return false;
    look_at_[id] = kNever;
    return true;
  }
  void ReindexNode(Node& node);
  /// Updates the resources that the worker occupies and the sets that it is in, after its leases
  /// changed.
  void Reassign(Worker& worker);
  /// Where the suspect may run that a worker is reserved for.
  enum class SuspectPlace { kEmptyWorker, kBesidePlanning };
  /// Reserves the worker for a suspect: it gets no tasks until it is empty, and its node keeps
  /// `need` free for it. It gets no shards either once it is not planning, or when the suspect may
  /// run beside that. Lasts until the next tick but one unless repeated. Does nothing while another
  /// worker is reserved, unless that one plans and this one does not.
  void Reserve(Worker& worker, const Resources& need, SuspectPlace place);
  /// Does nothing when it is not reserved.
  void Unreserve(Worker& worker);
  void TickReserved();
  bool AnyReserved() const { return reserved_ != kNoWorker; }
  /// The reserved worker; null when there is none, or it cannot be given leases now.
  Worker* Reserved();

  const OpenWorkers& open_for_tasks() const { return task_open_; }
  const OpenWorkers& open_for_planning() const { return planning_open_; }
  /// [numerics class]
  const OpenWorkers (&open_for_shards() const)[2] { return shard_open_; }
  bool IsOpenForTasks(WorkerId id) const { return open_keys_[id].task != kNotOpen; }
  bool IsOpenForPlanning(WorkerId id) const { return open_keys_[id].planning != kNotOpen; }
  bool IsOpenForShards(WorkerId id) const { return open_keys_[id].shard != kNotOpen; }
  /// As if it became freer.
  void LookAt(WorkerId id) {
    if (!std::exchange(open_keys_[id].freed, true)) freed_.push_back(id);
  }
  /// Keeps the worker for a task: it gets no shards until it has one, or is no longer kept.
  void Keep(Worker& worker);
  void Unkeep(Worker& worker);
  bool IsKept(WorkerId id) const { return open_keys_[id].kept; }
  const std::set<WorkerId>& kept() const { return kept_; }
  /// Cores of the nodes that are up.
  Amounts Up() const;
  bool AnyFreed() const { return !freed_.empty(); }
  const std::vector<WorkerId>& freed() const { return freed_; }
  /// Workers that became freer since they were taken last; valid until the next call.
  const std::vector<WorkerId>& TakeFreed();
  /// Workers whose leases changed since they were taken last.
  std::vector<WorkerId> TakeReassigned();

  Status Check() const;

 private:
  static constexpr std::uint32_t kNotOpen = UINT32_MAX;
  static constexpr TimeMs kNever = INT64_MAX;
  /// The keys of the open sets that a worker is in.
  struct OpenKeys {
    std::uint32_t task = kNotOpen, planning = kNotOpen, shard = kNotOpen;
    int kind = 0;
    bool may = false;
    bool freed = false;       ///< in `freed_`
    bool kept = false;        ///< in `kept_`
    bool reassigned = false;  ///< in `reassigned_`
  };
  /// Workers of a forgotten node that were declared dead, maybe wrongly: they stay excluded if the
  /// node returns.
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
  static void Rekey(OpenWorkers& open, WorkerId id, std::uint32_t& key, std::uint32_t to);
  Status CheckWorker(const Worker& worker) const;
  Status CheckNode(const Node& node) const;

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  std::map<std::string, Node> nodes_;
  std::unordered_map<std::string, Nodes> hosts_;  ///< by host identity
  std::deque<Worker> workers_;                    ///< workers of forgotten nodes are blank: node ""
  std::vector<WorkerId> unused_;                  ///< ids of forgotten workers, to be reused
  std::deque<Forgotten> forgotten_;               ///< at most kMaxForgottenNodes, the oldest first
  OpenWorkers task_open_, planning_open_, shard_open_[2];
  std::vector<OpenKeys> open_keys_;  ///< by worker, as the next
  std::vector<TimeMs> look_at_;
  std::vector<WorkerId> freed_, taken_, reassigned_;
  std::set<WorkerId> kept_;
  WorkerId reserved_ = kNoWorker;
  Resources reserved_need_;
  bool reserved_takes_shards_ = false;
  bool reserved_again_ = false;  ///< since the last tick
};

}  // namespace patchbay::scheduler
