// Delivery to real trainers: into the mapped ring on the same node, over TLS or RDMA to another
// one.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/core/lru_cache.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/data/network_policy.h"
#include "runtime/wire/data/remote_delivery.h"
#include "workers/stream/bounded_queue.h"
#include "workers/stream/shard_work.h"

namespace patchbay::workers {

struct TrainerDeliveryOptions {
  std::string host_identity;  ///< this process's; equal to the trainer's means same node
  data::Network rdma;    ///< policy kRdma: the fabric of this node; else it sends over TLS alone
  std::string gpu_uuid;  ///< a GPU worker's: then device slots of that GPU are written directly
  std::size_t send_buffers = 3;  ///< shards on their way to other nodes at once
  std::size_t rings_max = 16;    ///< trainers' rings kept mapped
};

/// Keeps a connection per trainer as long as it lives. Thread-safe.
class TrainerDelivery final : public Delivery {
 public:
  explicit TrainerDelivery(const TrainerDeliveryOptions& options);
  ~TrainerDelivery() override;

  StatusOr<std::unique_ptr<ShardWindow>> Open(const StreamContext& context,
                                              const protocol::ShardLease& lease) override;

  /// Unmaps the rings of trainers that have gone, so that a dead trainer's memory is free within
  /// the interval of these calls.
  void DropClosedRings();

 private:
  struct Ring;
  class MappedWindow;
  class RemoteWindow;
  using SendBuffer = std::unique_ptr<std::vector<std::byte>>;

  StatusOr<std::unique_ptr<ShardWindow>> OpenMapped(const protocol::TrainerEndpoint& trainer,
                                                    const StreamContext& context,
                                                    const protocol::ShardLease& lease);
  StatusOr<std::unique_ptr<ShardWindow>> OpenRemote(const protocol::TrainerEndpoint& trainer,
                                                    const StreamContext& context,
                                                    const protocol::ShardLease& lease);
  StatusOr<std::shared_ptr<Ring>> RingOf(const protocol::TrainerEndpoint& trainer,
                                         const StreamContext& context, std::uint32_t incarnation);
  StatusOr<std::shared_ptr<Ring>> ConnectRing(const protocol::TrainerEndpoint& trainer,
                                              const StreamContext& context,
                                              std::uint32_t incarnation) const;
  Status OpenForGpu(Ring& ring, const std::string& stream) const;
  StatusOr<data::RemoteSender*> SenderTo(const std::string& address);

  const TrainerDeliveryOptions options_;
  std::mutex mu_;
  LruCache<std::string, std::shared_ptr<Ring>> rings_;  // guarded by mu_; by stream and socket
  std::unique_ptr<data::RemoteSender> tls_, rdma_;      // guarded by mu_
  BoundedQueue<SendBuffer> send_buffers_;
};

}  // namespace patchbay::workers
