// One shard lease on its way through the pipeline, and the destination of its bytes: the pipeline
// asks for a window, writes the patches into it, and has it delivered. Behind the window is the
// trainer's mapped slot or a send buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/core/status.h"
#include "runtime/model/stream/stage_times.h"
#include "runtime/os/work_meter.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/stream/stream_context.h"

namespace patchbay::workers {

/// The destination of one shard. Used by one thread at a time, except that different patches may be
/// written by different threads.
class ShardWindow {
 public:
  virtual ~ShardWindow() = default;

  /// The host memory of the shard's part of an array, exactly the bytes of its grant. Do not write
  /// it where `device` is not null.
  virtual std::span<std::byte> host(std::size_t array) const = 0;
  /// The address in the memory of this process's GPU, or null.
  virtual std::byte* device(std::size_t) const { return nullptr; }
  /// Delivers the shard once everything is written; `times` are its stage times. OK: the trainer
  /// has it, as far as a worker can know. Unavailable: it could not be delivered. Call at most
  /// once, and write nothing afterwards.
  virtual Status Deliver(const StageTimes& times) = 0;
  /// Whether Deliver waits for the network: then it is called from the delivery thread.
  virtual bool DeliverBlocks() const = 0;
};

class Delivery {
 public:
  virtual ~Delivery() = default;
  /// Unavailable when the trainer cannot be reached; InvalidArgument for a grant that does not fit
  /// its ring. May wait for a free send buffer, and for the trainer's answer the first time.
  virtual StatusOr<std::unique_ptr<ShardWindow>> Open(const StreamContext& context,
                                                      const protocol::ShardLease& lease) = 0;
};

/// The cost of a shard, and the wall time that its stages took.
struct ShardSpent : protocol::WorkCost {
  StageTimes stages;
};

/// Wall time that the stages spent on a shard's patches, and its cost. Any thread.
struct StageClock {
  std::atomic<std::int64_t> storage_ns{0}, decode_ns{0}, transform_ns{0}, transfer_ns{0};
  std::atomic<std::int64_t> cpu_ns{0}, gpu_ns{0};
  std::atomic<std::uint64_t> bytes_read{0};

  StageTimes Times() const {
    return {ToStageUs(storage_ns), ToStageUs(decode_ns), ToStageUs(transform_ns),
            ToStageUs(transfer_ns)};
  }
  /// One of `parts` equal parts.
  void Charge(const ThreadSpent& spent, std::uint32_t parts = 1) {
    cpu_ns += spent.cpu_ns / parts;
    bytes_read += spent.bytes_read / parts;
  }
  ShardSpent Spent(std::uint64_t bytes_delivered) const {
    return {{cpu_ns / 1000, gpu_ns / 1000, bytes_read, bytes_delivered}, Times()};
  }
};

/// Shared by the stages that work on its patches; the stage that ends its last patch passes it on.
/// Thread-safe.
class ShardWork {
 public:
  ShardWork(std::shared_ptr<StreamContext> context, const protocol::ShardLease& lease)
      : context_(std::move(context)), lease_(lease), unfinished_(lease.grant.count) {}

  StreamContext& context() const { return *context_; }
  const std::shared_ptr<StreamContext>& shared_context() const { return context_; }
  const protocol::ShardLease& lease() const { return lease_; }

  /// From now on no patch of it is begun; one that is being written is finished.
  void Revoke() { revoked_.store(true, std::memory_order_relaxed); }
  bool revoked() const { return revoked_.load(std::memory_order_relaxed); }

  /// Whether its patches are still worth making: neither revoked nor failed.
  bool Wanted() const { return !revoked() && !failed_.load(std::memory_order_relaxed); }

  /// One patch is over, made or not. True for the last one: the caller passes the shard on.
  bool EndPatch(const Status& status) {
    if (!status.ok()) {
      const std::lock_guard lock(status_mu_);
      if (status_.ok()) status_ = status;
      failed_.store(true, std::memory_order_relaxed);
    }
    return unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  /// The first failure of its patches; Cancelled when it was revoked.
  Status Outcome() const {
    const std::lock_guard lock(status_mu_);
    if (!status_.ok()) return status_;
    if (revoked()) return Cancelled("make shard: its lease was revoked");
    return absl::OkStatus();
  }

  /// Moves while its patches are made; see Pipeline::ProgressOf.
  std::atomic<std::uint64_t> progress{0};
  StageClock spent;
  /// Set by the read stage before the first patch.
  std::unique_ptr<ShardWindow> window;

 private:
  const std::shared_ptr<StreamContext> context_;
  const protocol::ShardLease lease_;
  std::atomic<std::uint32_t> unfinished_;
  std::atomic<bool> revoked_{false}, failed_{false};
  mutable std::mutex status_mu_;
  Status status_;  // guarded by status_mu_
};

}  // namespace patchbay::workers
