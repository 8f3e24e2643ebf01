// Handles reports of agents and workers on themselves: registration, leases held, progress. Private
// to scheduler/core.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/peers.h"
#include "scheduler/core/recovery.h"
#include "scheduler/core/worker_lifecycle.h"
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// The tables that reports of workers change.
struct WorkerParts {
  Peers& peers;
  WorkerTable& worker_table;
  LeaseBook& book;
  Recovery& recovery;
  BatchDispatch& batch;
  StreamBook& streams;
  WorkerLifecycle& lifecycle;
};

/// Handles the messages of agents and workers, except those about shards and streams, and changes
/// of nodes by operators. It owns no
/// table: it checks the sender, and changes the tables of the worker_table, the recovery and the
/// dispatch parts.
class WorkerHandler {
 public:
  WorkerHandler(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
                const WorkerParts& parts)
      : event_(event),
        options_(options),
        barrier_(barrier),
        peers_(parts.peers),
        worker_table_(parts.worker_table),
        book_(parts.book),
        recovery_(parts.recovery),
        batch_(parts.batch),
        streams_(parts.streams),
        lifecycle_(parts.lifecycle) {}

  void On(const Request& request, protocol::RegisterAgent&& message);
  void On(const Request& request, protocol::RegisterWorker&& message);
  void On(const Request& request, protocol::RenewLeases&& message);
  void On(const Request& request, protocol::TasksFinished&& message);
  void On(const Request& request, protocol::PutResultPart&& message);
  /// FetchResult, when a worker sends it.
  void GiveInput(const Request& request, const protocol::FetchResult& message);
  void On(const Request& request, protocol::WorkerExited&& message);
  void On(const Request& request, protocol::Drain&& message);
  void On(const Request& request, protocol::ChangeNode&& message);

  /// Settles with who did not come back from before a restart.
  void TickRecovery();

 private:
  /// The node is known or may be taken in; another that left may have to be forgotten for it.
  bool HasRoomFor(const std::string& node);
  /// Whether no process of the node exists, or may exist: it has left, every process in the journal
  /// has ended, and no process can still write under their leases. `held_from`: the workers with
  /// leases.
  bool HoldsNothing(const Node& node, const std::set<WorkerId>& held_from) const;
  bool IsOnAnotherMachine(const Node& node, const protocol::RegisterAgent& message) const;
  void AgentRestarted(Node& node, std::uint64_t agent_incarnation);
  void StartWorker(Worker& worker, const protocol::RegisterWorker& message);
  void Reoffer(Worker& worker, const std::vector<protocol::HeldLease>& held, bool moved);
  void Kill(const WorkerPlace& place, std::uint64_t worker_incarnation);
  void Settle();
  void SetDrained(Node& node, bool drained);
  /// More may be leased than before.
  void LookAgain();

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  Peers& peers_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  Recovery& recovery_;
  BatchDispatch& batch_;
  StreamBook& streams_;
  WorkerLifecycle& lifecycle_;
};

}  // namespace patchbay::scheduler
