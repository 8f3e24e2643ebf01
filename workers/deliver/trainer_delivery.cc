#include "workers/deliver/trainer_delivery.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/data/ring_memory.h"
#include "runtime/data/shard_header.h"
#include "runtime/memory/device_block.h"

namespace patchbay::workers {
namespace {

data::ShardHeader HeaderOf(const protocol::ShardLease& lease, data::Landing landing) {
  data::ShardHeader header;
  header.stream = lease.stream;
  header.shard = lease.shard;
  header.grant = lease.grant;
  header.lease = lease.lease;
  header.landing = landing;
  return header;
}

/// Whatever keeps a shard from its trainer, another worker may manage.
Status Undeliverable(const Status& status) {
  return absl::UnavailableError(std::string(MessageOf(status)));
}

}  // namespace

/// A trainer's ring as this process sees it.
struct TrainerDelivery::Ring {
  std::unique_ptr<data::MappedRing> mapped;
  memory::DeviceBlock device;         ///< the trainer's slots, for a worker on the same GPU
  memory::PinnedRegistration pinned;  ///< the host slots, for a GPU worker
  std::mutex report_mu;               ///< one report at a time
};

class TrainerDelivery::MappedWindow final : public ShardWindow {
 public:
  MappedWindow(std::shared_ptr<Ring> ring, const protocol::ShardLease& lease,
               std::span<std::byte> window)
      : ring_(std::move(ring)), lease_(lease) {
    if (ring_->device.d_data() == nullptr) {
      host_ = window;
    } else {
      const std::uint64_t stride = data::SlotStride(ring_->mapped->offer().slot_bytes);
      device_ = ring_->device.d_data() + lease.grant.slot * stride + lease.grant.offset_bytes;
    }
  }

  std::span<std::byte> host() const override { return host_; }
  std::byte* device() const override { return device_; }
  bool DeliverBlocks() const override { return false; }

  Status Deliver() override {
    const data::Landing landing =
        device_ == nullptr ? data::Landing::kHost : data::Landing::kDevice;
    const std::lock_guard lock(ring_->report_mu);
    return ring_->mapped->ReportShardFinished(HeaderOf(lease_, landing));
  }

 private:
  const std::shared_ptr<Ring> ring_;
  const protocol::ShardLease lease_;
  std::span<std::byte> host_;
  std::byte* device_ = nullptr;
};

class TrainerDelivery::RemoteWindow final : public ShardWindow {
 public:
  RemoteWindow(TrainerDelivery& delivery, data::RemoteSender& sender, std::string address,
               const data::StreamSecret& secret, const protocol::ShardLease& lease,
               SendBuffer buffer)  // six: what one send needs, known only here
      : delivery_(delivery),
        sender_(sender),
        address_(std::move(address)),
        secret_(secret),
        lease_(lease),
        buffer_(std::move(buffer)) {
    buffer_->resize(lease.grant.size_bytes);
  }
  ~RemoteWindow() override { delivery_.send_buffers_.Push(std::move(buffer_)); }

  std::span<std::byte> host() const override { return *buffer_; }
  bool DeliverBlocks() const override { return true; }
  Status Deliver() override {
    return sender_.Send(address_, secret_, HeaderOf(lease_, data::Landing::kHost), *buffer_);
  }

 private:
  TrainerDelivery& delivery_;
  data::RemoteSender& sender_;
  const std::string address_;
  const data::StreamSecret secret_;
  const protocol::ShardLease lease_;
  SendBuffer buffer_;
};

TrainerDelivery::TrainerDelivery(const TrainerDeliveryOptions& options)
    : options_(options), send_buffers_(options.send_buffers) {
  for (std::size_t i = 0; i < options.send_buffers; ++i) {
    send_buffers_.Push(std::make_unique<std::vector<std::byte>>());
  }
}

TrainerDelivery::~TrainerDelivery() = default;

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::Open(const StreamContext& context,
                                                             const protocol::ShardLease& lease) {
  const auto trainer = context.TrainerOf(lease.shard.rank);
  if (!trainer.ok()) return Undeliverable(trainer.status());
  if ((*trainer)->host_identity == options_.host_identity) return OpenMapped(**trainer, lease);
  return OpenRemote(**trainer, lease);
}

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::OpenMapped(
    const protocol::TrainerEndpoint& trainer, const protocol::ShardLease& lease) {
  StatusOr<std::shared_ptr<Ring>> ring = RingOf(trainer, lease.stream);
  if (!ring.ok()) return Undeliverable(ring.status());
  PB_ASSIGN_OR_RETURN(const std::span<std::byte> window, (*ring)->mapped->Window(lease.grant));
  return std::unique_ptr<ShardWindow>(new MappedWindow(*std::move(ring), lease, window));
}

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::OpenRemote(
    const protocol::TrainerEndpoint& trainer, const protocol::ShardLease& lease) {
  if (trainer.ucx_address.empty()) {
    return absl::UnavailableError(StrCat("open window: stream ", lease.stream, " rank ",
                                         lease.shard.rank,
                                         ": the trainer takes nothing from other nodes"));
  }
  StatusOr<data::RemoteSender*> sender = Sender();
  if (!sender.ok()) return Undeliverable(sender.status());
  PB_ASSIGN_OR_RETURN(const data::StreamSecret secret,
                      data::StreamSecretFromText(trainer.stream_secret));
  SendBuffer buffer = std::move(*send_buffers_.Pop());
  return std::unique_ptr<ShardWindow>(
      new RemoteWindow(*this, **sender, trainer.ucx_address, secret, lease, std::move(buffer)));
}

void TrainerDelivery::DropClosedRings() {
  const std::lock_guard lock(mu_);
  rings_.remove_if([](const auto& entry) { return entry.second->mapped->Closed(); });
}

StatusOr<std::shared_ptr<TrainerDelivery::Ring>> TrainerDelivery::RingOf(
    const protocol::TrainerEndpoint& trainer, std::uint64_t stream) {
  const std::string name = StrCat(stream, "/", trainer.socket_name);
  DropClosedRings();
  {
    const std::lock_guard lock(mu_);
    const auto it = std::find_if(rings_.begin(), rings_.end(),
                                 [&](const auto& entry) { return entry.first == name; });
    if (it != rings_.end()) {
      rings_.splice(rings_.begin(), rings_, it);
      return rings_.front().second;
    }
  }
  PB_ASSIGN_OR_RETURN(std::shared_ptr<Ring> ring, ConnectRing(trainer, stream));
  const std::lock_guard lock(mu_);
  rings_.emplace_front(name, ring);
  if (rings_.size() > options_.rings_max) rings_.pop_back();
  return ring;
}

StatusOr<std::shared_ptr<TrainerDelivery::Ring>> TrainerDelivery::ConnectRing(
    const protocol::TrainerEndpoint& trainer, std::uint64_t stream) const {
  data::MappedRing::Options connect;
  connect.socket_name = trainer.socket_name;
  connect.stream = stream;
  PB_ASSIGN_OR_RETURN(connect.secret, data::StreamSecretFromText(trainer.stream_secret));
  auto ring = std::make_shared<Ring>();
  PB_ASSIGN_OR_RETURN(ring->mapped, data::MappedRing::Connect(connect));
  if (options_.gpu_uuid.empty()) return ring;
  PB_ASSIGN_OR_RETURN(const int gpu, memory::GpuIndexOf(options_.gpu_uuid));
  PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
  const data::RingOffer& offer = ring->mapped->offer();
  if (offer.device && offer.device->gpu_uuid == options_.gpu_uuid) {
    PB_ASSIGN_OR_RETURN(ring->device, memory::DeviceBlock::Import(*offer.device));
    return ring;
  }
  Grant first_slot;
  first_slot.size_bytes = offer.slot_bytes;
  PB_ASSIGN_OR_RETURN(const std::span<std::byte> first, ring->mapped->Window(first_slot));
  PB_ASSIGN_OR_RETURN(ring->pinned,
                      memory::PinnedRegistration::Register({first.data(), offer.ring_bytes}));
  return ring;
}

StatusOr<data::RemoteSender*> TrainerDelivery::Sender() {
  const std::lock_guard lock(mu_);
  if (sender_ == nullptr) {
    data::RemoteSender::Options start;
    start.network = options_.network;
    PB_ASSIGN_OR_RETURN(sender_, data::RemoteSender::Start(start));
  }
  return sender_.get();
}

}  // namespace patchbay::workers
