// The order of a shard's stages: read (bytes) -> decode (pixels) -> transform (finished patch, in
// its window) -> deliver. Stages meet in bounded queues, so the bytes of the next shard are read
// while this one is computed, and memory does not grow with the number of leases.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/stream/bounded_queue.h"
#include "workers/stream/patch_maker.h"
#include "workers/stream/patch_reader.h"
#include "workers/stream/shard_work.h"
#include "workers/stream/stream_context.h"

namespace patchbay::workers {

struct PipelineOptions {
  int compute_threads = 1;  ///< 1 for a CPU worker, which has one core; more feed a GPU
  /// Patches read ahead of the computing. Larger hides slower storage and costs their bytes.
  std::size_t fetched_patches_max = 8;
  /// And of their bytes as they lie on storage: beyond it one patch at a time is read.
  std::size_t fetched_bytes_max = std::size_t{256} << 20;
  std::size_t shards_max = 1024;  ///< leases held at once; a grant beyond is returned
};

/// The outcome of a shard: OK = delivered, Cancelled = revoked, Unavailable = could not be
/// delivered, anything else = its input is bad or we are.
using ShardEnded = std::function<void(const protocol::ShardLease& lease, const Status& status,
                                      const ShardSpent& spent)>;

/// One worker's stages and their threads. Thread-safe.
class Pipeline {
 public:
  /// `delivery` must outlive the pipeline. `ended` is called exactly once for every submitted
  /// shard, from any of the pipeline's threads; it must not block.
  static StatusOr<std::unique_ptr<Pipeline>> Start(const PipelineOptions& options,
                                                   Delivery& delivery, PatchMakerFactory makers,
                                                   ShardEnded ended);
  /// Revokes everything and joins the threads.
  ~Pipeline();

  /// Takes a shard. InvalidArgument when run and grant do not fit the stream, ResourceExhausted
  /// above shards_max; `ended` is not called then.
  Status Submit(std::shared_ptr<StreamContext> context, const protocol::ShardLease& lease);

  /// Voids a lease: a shard that has not begun is dropped; one that has begun stops after the
  /// current patch and is not delivered. Unknown leases are ignored.
  void Revoke(const LeaseNumber& lease);

  /// A number that rises while the shard, or the shards before it, are being made.
  std::uint64_t ProgressOf(const LeaseNumber& lease) const;
  std::size_t shards_held() const;

 private:
  using WorkPtr = std::shared_ptr<ShardWork>;
  using PatchPtr = std::unique_ptr<FetchedPatch>;

  Pipeline(const PipelineOptions& options, Delivery& delivery, ShardEnded ended);
  void ReadLoop();
  void ReadShard(const WorkPtr& work);
  Status Read(const WorkPtr& work, std::uint32_t index, FetchedPatch& patch);
  /// Counts progress of a shard in the making, and ends work that is no longer wanted.
  AfterPiece CountStep(ShardWork& work);
  /// Reads the patch again after a failure. OK: make the patch from the new bytes.
  Status ReadAgain(FetchedPatch& patch, const Status& failed);
  PatchPtr TakeBuffer();
  void GiveBack(PatchPtr patch);
  void ComputeLoop(PatchMaker& maker);
  bool TakeReady(PatchMaker& maker, std::vector<PatchPtr>& ready);
  void DeliverLoop();
  void OnPatchEnded(PatchPtr patch, const Status& status);
  void OnLastPatch(const WorkPtr& work);
  void DeliverShard(const WorkPtr& work);
  void End(const WorkPtr& work, const Status& status);

  const PipelineOptions options_;
  Delivery& delivery_;
  const ShardEnded ended_;
  BoundedQueue<WorkPtr> waiting_;
  BoundedQueue<PatchPtr> free_patches_;  ///< empty patches; with held_bytes_, they bound the memory
  BoundedQueue<PatchPtr> fetched_;
  BoundedQueue<WorkPtr> finished_;          ///< to be delivered over the network
  std::atomic<std::uint64_t> steps_{0};     ///< pieces read and patches made: a sign of progress
  std::atomic<std::size_t> held_bytes_{0};  ///< bytes of patches that were read and not made yet
  mutable std::mutex held_mu_;
  std::map<LeaseNumber, WorkPtr> held_;  // guarded by held_mu_
  std::vector<std::thread> compute_threads_;
  std::thread read_thread_, deliver_thread_;  ///< none when a compute thread could not start
};

}  // namespace patchbay::workers
