#include "workers/stream/trainer_delivery.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/core/outcome.h"
#include "runtime/memory/device_block.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::workers {
namespace {

data::ShardHeader HeaderOf(const protocol::ShardLease& lease, data::Landing landing,
                           std::size_t arrays, const StageTimes& times) {
  data::ShardHeader header;
  header.times = times;
  header.arrays = static_cast<std::uint8_t>(arrays);
  header.stream = lease.stream;
  header.shard = lease.shard;
  header.grant = lease.grant;
  header.lease = lease.lease;
  header.landing = landing;
  return header;
}

/// A shard that this worker cannot deliver to its trainer may be delivered by another.
Status Undeliverable(const Status& status) {
  return WithCode(status, absl::StatusCode::kUnavailable);
}

}  // namespace

/// A trainer's ring as this process sees it. Its device memory is closed before its socket: the
/// trainer takes a hang-up for the proof of that.
struct TrainerDelivery::Ring {
  std::unique_ptr<data::MappedRing> mapped;
  memory::DeviceBlock device;         ///< the trainer's slots, for a worker on the same GPU
  memory::PinnedRegistration pinned;  ///< the host slots, for a GPU worker
  std::mutex report_mu;               ///< one report at a time
};

class TrainerDelivery::MappedWindow final : public ShardWindow {
 public:
  MappedWindow(std::shared_ptr<Ring> ring, const protocol::ShardLease& lease,
               std::vector<std::span<std::byte>> window)
      : ring_(std::move(ring)), lease_(lease), host_(std::move(window)) {}

  std::span<std::byte> host(std::size_t array) const override { return host_[array]; }
  std::byte* device(std::size_t array) const override {
    if (OnHost() || !ring_->mapped->layout().OnDevice(array)) return nullptr;
    return ring_->device.d_data() + ring_->mapped->DeviceOffset(lease_.grant, array);
  }
  bool DeliverBlocks() const override { return false; }

  Status Deliver(const StageTimes& times) override {
    const data::Landing landing = OnHost() ? data::Landing::kHost : data::Landing::kDevice;
    const std::lock_guard lock(ring_->report_mu);
    return ring_->mapped->ReportShardFinished(HeaderOf(lease_, landing, host_.size(), times));
  }

 private:
  bool OnHost() const { return ring_->device.d_data() == nullptr; }

  const std::shared_ptr<Ring> ring_;
  const protocol::ShardLease lease_;
  const std::vector<std::span<std::byte>> host_;
};

class TrainerDelivery::RemoteWindow final : public ShardWindow {
 public:
  RemoteWindow(TrainerDelivery& delivery, data::RemoteSender& sender, data::RemoteTarget target,
               const protocol::ShardLease& lease, const SlotLayout& layout, SendBuffer buffer)
      : delivery_(delivery),
        sender_(sender),
        target_(std::move(target)),
        lease_(lease),
        buffer_(std::move(buffer)) {
    buffer_->resize(layout.host_stride());
    for (std::size_t i = 0; i < layout.arrays(); ++i) {
      const ByteRange range = layout.InHost(i, 0, lease.grant.count);
      host_.push_back(std::span(*buffer_).subspan(range.offset_bytes, range.size_bytes));
    }
  }
  ~RemoteWindow() override { delivery_.send_buffers_.Push(std::move(buffer_)); }

  std::span<std::byte> host(std::size_t array) const override { return host_[array]; }
  bool DeliverBlocks() const override { return true; }
  Status Deliver(const StageTimes& times) override {
    const std::vector<std::span<const std::byte>> payload(host_.begin(), host_.end());
    return sender_.Send(target_, HeaderOf(lease_, data::Landing::kHost, payload.size(), times),
                        payload);
  }

 private:
  TrainerDelivery& delivery_;
  data::RemoteSender& sender_;
  const data::RemoteTarget target_;
  const protocol::ShardLease lease_;
  SendBuffer buffer_;
  std::vector<std::span<std::byte>> host_;  ///< parts of buffer_, laid out as a slot for this shard
};

TrainerDelivery::TrainerDelivery(const TrainerDeliveryOptions& options)
    : options_(options), rings_(options.rings_max), send_buffers_(options.send_buffers) {
  for (std::size_t i = 0; i < options.send_buffers; ++i) {
    send_buffers_.Push(std::make_unique<std::vector<std::byte>>());
  }
}

TrainerDelivery::~TrainerDelivery() = default;

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::Open(const StreamContext& context,
                                                             const protocol::ShardLease& lease) {
  const auto trainer = context.TrainerOf(lease.shard.rank);
  if (!trainer.ok()) return Undeliverable(trainer.status());
  if ((*trainer)->host_identity == options_.host_identity)
    return OpenMapped(**trainer, context, lease);
  return OpenRemote(**trainer, context, lease);
}

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::OpenMapped(
    const protocol::TrainerEndpoint& trainer, const StreamContext& context,
    const protocol::ShardLease& lease) {
  StatusOr<std::shared_ptr<Ring>> ring = RingOf(trainer, context, lease.lease.incarnation);
  if (!ring.ok()) return Undeliverable(ring.status());
  if (!(*ring)->mapped->Covers(lease.lease)) {
    return FailedPrecondition(
        "open window: stream ", lease.stream, ": lease ", lease.lease.ToString(),
        " is of an earlier scheduler than the trainer's ring was mapped under");
  }
  PB_ASSIGN_OR_RETURN(auto window, (*ring)->mapped->Window(lease.grant));
  return std::unique_ptr<ShardWindow>(new MappedWindow(*std::move(ring), lease, std::move(window)));
}

StatusOr<std::unique_ptr<ShardWindow>> TrainerDelivery::OpenRemote(
    const protocol::TrainerEndpoint& trainer, const StreamContext& context,
    const protocol::ShardLease& lease) {
  if (trainer.remote_address.empty()) {
    return Unavailable("open window: stream ", lease.stream, " rank ", lease.shard.rank,
                       ": the trainer accepts no shards from other nodes");
  }
  StatusOr<data::RemoteSender*> sender = SenderTo(trainer.remote_address);
  if (!sender.ok()) return Undeliverable(sender.status());
  data::RemoteTarget target{trainer.remote_address, {}, lease.stream, lease.shard.rank};
  PB_ASSIGN_OR_RETURN(target.secret, data::StreamSecretFromText(trainer.stream_secret));
  PB_ASSIGN_OR_RETURN(const SlotLayout layout,
                      SlotLayout::Of(context.layout(), lease.grant.count, false));
  SendBuffer buffer = std::move(*send_buffers_.Pop());
  return std::unique_ptr<ShardWindow>(
      new RemoteWindow(*this, **sender, std::move(target), lease, layout, std::move(buffer)));
}

void TrainerDelivery::DropClosedRings() {
  const std::lock_guard lock(mu_);
  rings_.EraseIf([](const auto& entry) { return entry.value->mapped->Closed(); });
}

StatusOr<std::shared_ptr<TrainerDelivery::Ring>> TrainerDelivery::RingOf(
    const protocol::TrainerEndpoint& trainer, const StreamContext& context,
    std::uint32_t incarnation) {
  const std::string name = StrCat(context.stream(), "/", trainer.socket_name);
  DropClosedRings();
  {
    const std::lock_guard lock(mu_);
    if (const auto* const known = rings_.Find(name); known != nullptr) return *known;
  }
  PB_ASSIGN_OR_RETURN(std::shared_ptr<Ring> ring, ConnectRing(trainer, context, incarnation));
  const std::lock_guard lock(mu_);
  rings_.Insert(name, ring);
  return ring;
}

StatusOr<std::shared_ptr<TrainerDelivery::Ring>> TrainerDelivery::ConnectRing(
    const protocol::TrainerEndpoint& trainer, const StreamContext& context,
    std::uint32_t incarnation) const {
  data::MappedRing::Options connect;
  connect.incarnation = incarnation;
  connect.socket_name = trainer.socket_name;
  connect.stream = context.stream();
  connect.layout = context.layout();
  connect.capacity = Capacity(context.geometry());
  PB_ASSIGN_OR_RETURN(connect.secret, data::StreamSecretFromText(trainer.stream_secret));
  auto ring = std::make_shared<Ring>();
  PB_ASSIGN_OR_RETURN(ring->mapped, data::MappedRing::Connect(connect));
  if (options_.gpu_uuid.empty()) return ring;
  PB_RETURN_IF_ERROR(OpenForGpu(*ring, StrCat("stream ", context.stream())));
  return ring;
}

/// The trainer's slots where they are on this worker's GPU and can be mapped; else its host memory,
/// page-locked, from which it copies to slots on a device.
Status TrainerDelivery::OpenForGpu(Ring& ring, const std::string& stream) const {
  PB_ASSIGN_OR_RETURN(const int gpu, memory::GpuIndexOf(options_.gpu_uuid));
  PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
  const auto& slots = ring.mapped->offer().device;
  if (slots && slots->gpu_uuid == options_.gpu_uuid) {
    auto mapped = memory::DeviceBlock::Import(*slots);
    if (mapped.ok()) {
      ring.device = *std::move(mapped);
      return absl::OkStatus();
    }
    PB_RETURN_IF_ERROR(memory::GpuAnswers(options_.gpu_uuid));
    LogWarning(StrCat(stream, ": the trainer's slots on ", slots->gpu_uuid,
                      " cannot be mapped here (", MessageOf(mapped.status()),
                      "): batches go by page-locked host memory and one copy more; containers that "
                      "share a GPU need one IPC and PID namespace and one user"));
  } else if (slots) {
    LogInfo(StrCat(stream, ": the trainer's slots are on ", slots->gpu_uuid,
                   " and this worker is on ", options_.gpu_uuid,
                   ": batches go by page-locked host memory and one copy more"));
  }
  auto pinned = memory::PinnedRegistration::Register(ring.mapped->host());
  if (pinned.ok()) {
    ring.pinned = *std::move(pinned);
    return absl::OkStatus();
  }
  PB_RETURN_IF_ERROR(memory::GpuAnswers(options_.gpu_uuid));
  LogWarning(StrCat(stream, ": the trainer's host memory cannot be page-locked (",
                    MessageOf(pinned.status()), "): copies to it are slower"));
  return absl::OkStatus();
}

StatusOr<data::RemoteSender*> TrainerDelivery::SenderTo(const std::string& address) {
  const bool is_tls = address.starts_with(data::kTlsScheme);
  if (!is_tls && options_.rdma.policy != data::NetworkPolicy::kRdma) {
    return Unavailable(
        "open window: the trainer accepts shards over RDMA only, and this node was not given "
        "--data-policy rdma");
  }
  const std::lock_guard lock(mu_);
  std::unique_ptr<data::RemoteSender>& sender = is_tls ? tls_ : rdma_;
  if (sender == nullptr) {
    data::RemoteSender::Options start;
    if (!is_tls) start.network = options_.rdma;
    PB_ASSIGN_OR_RETURN(sender, data::RemoteSender::Start(start));
  }
  return sender.get();
}

}  // namespace patchbay::workers
