// Handles messages of trainers and of the workers that serve them: streams from opening to end.
// Private to scheduler/core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/core/peers.h"
#include "scheduler/core/recovery.h"
#include "scheduler/core/shard_leases.h"
#include "scheduler/core/stream_dispatch.h"
#include "scheduler/core/trainer_slots.h"
#include "scheduler/core/unit_pool.h"
#include "scheduler/core/worker_lifecycle.h"
#include "scheduler/state/drop_reports.h"
#include "scheduler/state/job_logs.h"  // wide: acts on ten parts
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// The tables of everything that a stream takes.
struct StreamParts {
  Peers& peers;
  WorkerTable& worker_table;
  LeaseBook& book;
  Charges& charges;
  Recovery& recovery;
  StreamBook& streams;
  UnitPool& units;
  ShardLeases& shards;
  TrainerSlots& slots;
  StreamDispatch& dispatch;
  WorkerLifecycle& lifecycle;
};

/// Handles the messages about streams. It owns only the table of dropped peers: it checks the
/// sender, opens and ends streams in the stream book, and passes on messages about slots and
/// shards.
class StreamHandler {
 public:
  StreamHandler(const EventContext& event, const CoreOptions& options, JournalBarrier& barrier,
                JobLogs& logs, const StreamParts& parts);

  void On(const Request& request, protocol::AttachTrainer&& message);
  void On(const Request& request, protocol::AnnounceSlots&& message);
  void On(const Request& request, protocol::ShardsCounted&& message);
  void On(const Request& request, protocol::ShardFenced&& message);
  void On(const Request& request, protocol::PeersDropped&& message);
  void On(const Request& request, protocol::DetachTrainer&& message);
  void On(const Request& request, protocol::FinishUnit&& message) {
    units_.Finish(request, std::move(message));
  }
  void On(const Request& request, protocol::FetchStream&& message);
  void On(const Request& request, protocol::ShardsReturned&& message);

  const DropReports& drop_reports() const { return drop_reports_; }
  void TakeOwnDropped(std::vector<protocol::PeersDropped::Item>&& items) {
    drop_reports_.TakeOwn(std::move(items));
  }
  /// Null when it is not open.
  const Stream* Find(JobId job) { return streams_.Find(job); }
  const std::map<JobId, Stream>& open() const { return streams_.streams(); }
  /// Opens the stream of a running job that has its plan. A plan that cannot be read fails the job.
  StatusOr<Stream*> Open(JobId id);
  void End(JobId job, JobState state, Outcome&& outcome);
  /// The job's priority or hold changed.
  void Change(const Job& job) {
    Stream* const stream = streams_.Find(job.id);
    if (stream == nullptr) return;
    stream->priority = job.priority;
    stream->on_hold = job.on_hold;
    streams_.MarkChanged(job.id);
  }
  /// Ends the streams that were marked while the event was handled.
  void EndCollected();
  /// The job ended: its trainers are told once that is durable, unless they left by themselves.
  void Close(const Job& job);
  /// Ends the streams of a revoked key: trainers attached with it are detached, and no other may
  /// attach.
  void KeyRevoked(const std::string& name);
  /// The trainer's connection is gone.
  void Leave(PeerId peer);
  /// Notes a trainer's heartbeat. nullopt when the peer is no trainer; false when it must attach
  /// again.
  std::optional<bool> Heard(PeerId peer, const protocol::Heartbeat& heard);
  void Tick();

 private:
  Status CheckAttach(const Request& request, const protocol::AttachTrainer& message,
                     const Stream& stream) const;
  Status CheckStart(const protocol::AttachTrainer& message, const Stream& stream) const;
  void AttachFresh(Stream& stream, const protocol::AttachTrainer& message);
  void DescribeToWorkers(const Stream& stream);
  protocol::StreamDescribed Describe(const Stream& stream) const;
  Trainer* TrainerOf(const Request& request, JobId stream, std::uint32_t rank);
  void ReturnShard(Worker& worker, const protocol::ShardsReturned::Item& item);
  void ShardFailed(Lease& lease, Worker& worker, Outcome outcome);
  void Bar(Worker& worker, const Lease& lease, const Outcome& why);
  void ForgetTrainer(Trainer& trainer);
  void DropTrainer(Stream& stream, std::uint32_t rank, bool died = false);
  void DropForgotten(Stream& stream);
  void FailShard(JobId job, const ShardId& shard, Outcome&& outcome);
  void TickLeases(Trainer& trainer);
  void TickTrainer(Stream& stream, Trainer& trainer);
  void TickWait(Stream& stream);
  void TickRevoking(Lease& lease);

  const EventContext& event_;
  const CoreOptions& options_;
  JournalBarrier& barrier_;
  JobTable& table_;
  JobLogs& logs_;
  Peers& peers_;
  WorkerTable& worker_table_;
  LeaseBook& book_;
  Charges& charges_;
  Recovery& recovery_;
  StreamBook& streams_;
  UnitPool& units_;
  ShardLeases& shards_;
  TrainerSlots& slots_;
  StreamDispatch& dispatch_;
  WorkerLifecycle& lifecycle_;
  DropReports drop_reports_;
};

}  // namespace patchbay::scheduler
