// A worker's session with the scheduler: takes leases, passes them to the runners, renews them and
// reports their outcomes. Its thread does no task work.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/process/task_runner.h"
#include "workers/stream/image_cache.h"
#include "workers/stream/pipeline.h"
#include "workers/stream/stream_context.h"  // wide: owns every stage of a worker
#include "workers/stream/trainer_delivery.h"

namespace patchbay::workers {

struct WorkerOptions {
  control::KeyFile key;
  std::string node;  ///< the name the node is registered under
  std::uint32_t index = 0;
  std::uint64_t agent_incarnation = 0, worker_incarnation = 0;
  Numerics numerics = Numerics::kCpu;
  protocol::Resources capacity;
  /// Memory for the state of open images. Larger: fewer images opened again, more memory.
  std::size_t image_bytes_max = std::size_t{256} << 20;
  ReadCacheLimits read_caches;
  TaskRunnerOptions tasks;  ///< options of both runners
  PipelineOptions pipeline;
  TrainerDeliveryOptions delivery;
};

/// Runs from Open until it is drained. Everything but the callbacks of runner and pipeline happens
/// on the loop's thread.
class WorkerSession {
 public:
  /// Starts the stages and connects. `loop` must outlive the session.
  static StatusOr<std::unique_ptr<WorkerSession>> Open(control::EventLoop& loop,
                                                       const WorkerOptions& options);
  ~WorkerSession();

  /// Takes no more leases, finishes and reports held ones, then stops the loop.
  void Drain();

 private:
  /// A lease this worker has and has not accounted for yet.
  struct Held {
    protocol::HeldLease lease;
    bool planning = false;  ///< a task for the thread that plans
    bool finished = false;  ///< its outcome is waiting to be committed
  };
  /// A stream, or the shards that wait until it is described.
  struct Stream {
    std::shared_ptr<StreamContext> context;
    std::string plan, manifest;  ///< as far as they are here
    std::vector<protocol::ShardLease> waiting;
    bool asked = false;
  };

  WorkerSession(control::EventLoop& loop, const WorkerOptions& options);
  Status Start();

  void Register();
  void OnRegistered(const std::set<LeaseNumber>& offered, StatusOr<protocol::Body> answer);
  void OnFact(protocol::Body body);
  void DropFormer(const std::set<LeaseNumber>& offered);
  void OnGranted(protocol::LeasesGranted granted);
  bool IsFormer(const LeaseNumber& lease) const {
    return lease.incarnation < scheduler_incarnation_;
  }
  void TakeTask(protocol::TaskLease lease);
  void FetchInputs(std::shared_ptr<protocol::TaskLease> lease);
  void OnInputFetched(std::shared_ptr<protocol::TaskLease> lease, StatusOr<protocol::Body> answer);
  void StartTask(protocol::TaskLease lease);
  TaskRunner& RunnerOf(bool planning) { return planning ? *planning_ : *tasks_; }
  void RefuseTask(const protocol::TaskLease& lease, const Status& why);
  void TakeShard(const protocol::ShardLease& lease);
  void AskForStream(std::uint64_t stream);
  void OnStreamAnswer(std::uint64_t stream, StatusOr<protocol::Body> answer);
  void OnStreamDescribed(protocol::StreamDescribed described);
  bool TakeText(Stream& stream, const protocol::StreamDescribed& described);
  void ForgetIdleStreams();
  void Revoke(const LeaseNumber& lease);
  void RevokeEarly(const LeaseNumber& lease);
  void ReturnShard(const LeaseNumber& lease, std::uint64_t stream, const ShardId& shard,
                   const Status& status, const ShardSpent& spent = {});
  void Renew();
  void OnTaskEnded(protocol::TasksFinished::Item item);
  void PutParts(std::shared_ptr<protocol::TasksFinished::Item> item, std::size_t offset);
  void SendFinished();
  void OnFinishedAnswer(std::vector<protocol::TasksFinished::Item> items,
                        StatusOr<protocol::Body> answer);
  void OnShardEnded(const protocol::ShardLease& lease, const Status& status,
                    const ShardSpent& spent = {});
  void EndIfGpuIsLost();
  void LeaveWithoutScheduler();
  void StopWhenEmpty();

  control::EventLoop& loop_;
  const WorkerOptions options_;
  std::map<LeaseNumber, Held> held_;
  std::map<std::uint64_t, Stream> streams_;
  std::vector<protocol::TasksFinished::Item> to_report_;
  int reports_pending_ = 0;  ///< TasksFinished without an answer yet
  std::uint64_t finished_progress_ = 0;
  std::uint32_t scheduler_incarnation_ = 0;
  TimeMs heard_at_ms_ = 0;  ///< last fact of the scheduler, the answer to a heartbeat among them
  control::EventLoop::Id register_again_ = 0;  ///< the one timer for it
  bool registering_ = false, registered_ = false, draining_ = false, leases_end_ = false;
  /// Leases granted while a registration is under way, which does not list them: kept if the
  /// scheduler that answers granted them, void if a former one did.
  protocol::LeasesGranted early_;
  std::unique_ptr<ImageCache> images_;
  std::unique_ptr<TrainerDelivery> delivery_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<TaskRunner> tasks_, planning_;
  std::unique_ptr<control::Session> session_;
};

}  // namespace patchbay::workers
