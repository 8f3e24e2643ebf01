// The parts of the core, and how events reach them. Private to scheduler/core.
#pragma once

#include <string>
#include <vector>

#include "scheduler/core/batch_dispatch.h"
#include "scheduler/core/charges.h"
#include "scheduler/core/core.h"
#include "scheduler/core/event_context.h"
#include "scheduler/core/job_handler.h"
#include "scheduler/core/journal_barrier.h"
#include "scheduler/core/lease_book.h"
#include "scheduler/core/peers.h"
#include "scheduler/core/recovery.h"  // wide: owns every part
#include "scheduler/core/shard_leases.h"
#include "scheduler/core/stream_dispatch.h"
#include "scheduler/core/stream_handler.h"
#include "scheduler/core/team_handler.h"
#include "scheduler/core/trainer_slots.h"
#include "scheduler/core/unit_pool.h"
#include "scheduler/core/worker_handler.h"
#include "scheduler/core/worker_lifecycle.h"
#include "scheduler/core/worker_table.h"
#include "scheduler/state/job_logs.h"
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// Declared from the bottom up: a part knows only the parts declared before it, and the barrier
/// passes the effects of a record to Apply.
struct Core::Parts {
  explicit Parts(const CoreOptions& options_in);

  /// Handles one event: runs `work`, then grants leases and sends the collected messages.
  template <typename Work>
  void Handle(Instant at, Actions& actions, const Work& work) {
    Begin(at, actions);
    work();
    Finish();
  }

  void Start();
  void Receive(PeerId peer, protocol::Envelope&& message);
  void Heard(const Request& request, const protocol::Heartbeat& heartbeat);
  void PeerGone(PeerId peer);
  void Tick();
  void Durable(std::uint64_t sequence);
  CoreGauges Gauges() const;
  ClusterMeasures Measure();
  Status Check() const;

  const CoreOptions options;
  bool grants = true;
  EventContext event;
  JournalBarrier barrier;
  JobLogs logs;
  FairShare fair;
  WorkerTable worker_table;
  Peers peers;
  LeaseBook book;
  Charges charges;
  Recovery recovery;
  StreamBook streams;
  StreamPlaces places;
  UnitPool units;
  ShardLeases shards;
  TrainerSlots slots;
  BatchDispatch batch;
  StreamDispatch stream_dispatch;
  WorkerLifecycle lifecycle;
  WorkerHandler worker_handler;
  StreamHandler stream_handler;
  CoreShares shares;
  JobCauses causes;
  JobHandler job_handler;
  TeamHandler team_handler;

 private:
  void Begin(Instant at, Actions& actions);
  void Finish();
  /// Acts on the effects of a record, within its Emit.
  void Apply(Effects& effects);
  /// To the one part that takes messages of its type; facts that no peer may send are taken by
  /// none.
  template <typename Message>
  void Route(const Request& request, Message&& message);
};

}  // namespace patchbay::scheduler
