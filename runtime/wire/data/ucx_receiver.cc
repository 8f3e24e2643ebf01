// The trainer's end of delivery over UCX.

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/ucx_worker.h"

namespace patchbay::data {
namespace {

constexpr std::string_view kRdmaPeer = "a peer on the RDMA fabric";  ///< UCX does not name it

class UcxReceiver;

/// One array of a shard on its way into a slot. Lives until its request completed.
struct Transfer {
  UcxReceiver* receiver = nullptr;
  ShardHeader header;
  std::span<std::byte> bytes;
  ucp_ep_h endpoint = nullptr;
  std::int64_t begun_ns = 0;
};

class UcxReceiver final : public RemoteReceiver {
 public:
  UcxReceiver(Ring& ring, const Options& options) : ring_(ring), options_(options) {}
  ~UcxReceiver() override;

  Status Open();
  const std::string& address() const override { return address_; }
  bool EndTransfer(const ShardId& shard, const LeaseNumber& lease) override;
  std::uint64_t bytes_counted() const override { return bytes_counted_; }
  std::uint64_t connections_dropped() const override { return dropped_.total(); }
  std::vector<DroppedPeer> dropped_peers() const override { return dropped_.List(); }
  std::string Transport() const override;

 private:
  static ucs_status_t OnHello(void* self, const void* header, std::size_t header_bytes,
                              void* payload, std::size_t payload_bytes,
                              const ucp_am_recv_param_t* param);
  static void OnEndpointError(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static ucs_status_t OnMessage(void* self, const void* header, std::size_t header_bytes,
                                void* payload, std::size_t payload_bytes,
                                const ucp_am_recv_param_t* param);
  static void OnReceived(void* request, ucs_status_t status, std::size_t bytes, void* transfer);

  Status Register(unsigned id, ucp_am_recv_callback_t callback);
  void Run();
  Status Admit(std::span<const std::byte> hello);
  ucs_status_t Begin(std::span<const std::byte> header, void* payload, std::size_t payload_bytes,
                     const ucp_am_recv_param_t* param);
  std::optional<std::uint64_t> PayloadBytes(const ShardHeader& header) const;
  ucs_status_t Receive(std::unique_ptr<Transfer> transfer, void* descriptor);
  void Finish(std::unique_ptr<Transfer> transfer, const Status& received);
  void CloseBroken();
  void NoteTransport(ucp_ep_h endpoint);

  Ring& ring_;
  const Options options_;
  std::string address_;
  std::unique_ptr<UcxWorker> ucx_;
  std::set<ucp_ep_h> endpoints_;  ///< to senders that have shown the stream's secret
  std::set<ucp_ep_h> broken_;     ///< to be closed outside UCX's callbacks
  std::set<Transfer*> transfers_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> bytes_counted_ = 0;
  DroppedPeers dropped_;
  mutable std::mutex transport_mu_;
  std::string transport_;  ///< guarded by transport_mu_
  std::thread thread_;
};

UcxReceiver::~UcxReceiver() {
  stopping_ = true;
  if (ucx_ != nullptr && thread_.joinable()) {
    ucx_->Post([] {});
    thread_.join();
  }
}

Status UcxReceiver::Open() {
  PB_ASSIGN_OR_RETURN(ucx_, UcxWorker::Open(options_.network));
  PB_RETURN_IF_ERROR(Register(kShardMessageId, &UcxReceiver::OnMessage));
  PB_RETURN_IF_ERROR(Register(kHelloMessageId, &UcxReceiver::OnHello));
  address_ = StrCat(kUcxScheme, ucx_->AddressText());
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

Status UcxReceiver::Register(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = callback;
  handler.arg = this;
  return FromUcx(Ucx().ucp_worker_set_am_recv_handler(ucx_->worker(), &handler),
                 "register message");
}

void UcxReceiver::Run() {
  while (!stopping_) {
    ucx_->Progress(broken_.empty() ? -1 : 0);
    CloseBroken();
  }
  broken_.insert(endpoints_.begin(), endpoints_.end());
  CloseBroken();
  while (!transfers_.empty()) ucx_->Progress(1);
}

ucs_status_t UcxReceiver::OnHello(void* self, const void*, std::size_t, void* payload,
                                  std::size_t payload_bytes, const ucp_am_recv_param_t*) {
  auto* receiver = static_cast<UcxReceiver*>(self);
  const Status admitted = receiver->Admit({static_cast<const std::byte*>(payload), payload_bytes});
  if (!admitted.ok()) {
    receiver->dropped_.Count(kRdmaPeer, MessageOf(admitted));
    LogWarning(Describe(admitted));
  }
  return UCS_OK;  // shards of who was not admitted are refused
}

/// UCX made the endpoint that a sender's messages arrive over. Connecting to the sender's address
/// adopts it: from then on its failures are reported here, and it can be closed.
Status UcxReceiver::Admit(std::span<const std::byte> hello) {
  PB_ASSIGN_OR_RETURN(const auto sender, DecodeHello(hello, options_.secret));
  if (endpoints_.size() >= options_.senders_max) {
    return ResourceExhausted("admit sender: too many senders");
  }
  PB_ASSIGN_OR_RETURN(const ucp_ep_h endpoint,
                      ucx_->EndpointTo(sender, &UcxReceiver::OnEndpointError, this));
  endpoints_.insert(endpoint);
  return absl::OkStatus();
}

void UcxReceiver::OnEndpointError(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  LogDebug(Describe(FromUcx(status, "remote receiver: a sender went away")));
  static_cast<UcxReceiver*>(self)->broken_.insert(endpoint);
}

/// UCX lets only endpoints of ours be closed by force; others it closes itself.
void UcxReceiver::CloseBroken() {
  while (!broken_.empty()) {
    const ucp_ep_h endpoint = *broken_.begin();
    broken_.erase(broken_.begin());
    if (endpoints_.erase(endpoint) > 0) ucx_->CloseByForce(endpoint);
  }
}

ucs_status_t UcxReceiver::OnMessage(void* self, const void* header, std::size_t header_bytes,
                                    void* payload, std::size_t payload_bytes,
                                    const ucp_am_recv_param_t* param) {
  const std::span bytes(static_cast<const std::byte*>(header), header_bytes);
  return static_cast<UcxReceiver*>(self)->Begin(bytes, payload, payload_bytes, param);
}

/// Bytes of the array the header names; nullopt when the stream has no such array, or not so many.
std::optional<std::uint64_t> UcxReceiver::PayloadBytes(const ShardHeader& header) const {
  const SlotLayout& layout = ring_.layout();
  if (header.arrays != layout.arrays() || header.array >= layout.arrays()) return std::nullopt;
  return header.grant.count * layout.PatchBytes(header.array);
}

/// Looks at the header before a single byte of the payload is taken. A refusal is an event, not an
/// error of the connection, unless the sender does not know the stream's secret.
ucs_status_t UcxReceiver::Begin(std::span<const std::byte> header, void* payload,
                                std::size_t payload_bytes, const ucp_am_recv_param_t* param) {
  const bool has_endpoint = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  auto decoded = DecodeShardHeader(header, options_.secret);
  if (decoded.ok() && payload_bytes != PayloadBytes(*decoded)) {
    decoded = InvalidArgument("receive shard: payload and grant differ in size");
  }
  if (decoded.ok() && decoded->landing != Landing::kHost) {
    decoded = InvalidArgument("receive shard: only host memory can be written from another node");
  }
  if (decoded.ok() && (!has_endpoint || !endpoints_.contains(param->reply_ep))) {
    decoded = PermissionDenied("receive shard: its sender did not introduce itself");
  }
  if (!decoded.ok()) {
    LogWarning(Describe(decoded.status()));
    ring_.CountRefusal();
    dropped_.Count(kRdmaPeer, MessageOf(decoded.status()));
    if (has_endpoint) broken_.insert(param->reply_ep);
    return UCS_ERR_REJECTED;
  }
  const auto window = ring_.BeginReceive(*decoded);
  if (!window.ok()) {
    LogDebug(Describe(window.status()));
    return UCS_ERR_REJECTED;
  }
  auto transfer = std::make_unique<Transfer>();
  transfer->receiver = this;
  transfer->header = *decoded;
  transfer->bytes = *window;
  transfer->begun_ns = SteadyNowNs();
  transfer->endpoint = param->reply_ep;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return Receive(std::move(transfer), payload);
  }
  std::memcpy(window->data(), payload, payload_bytes);
  Finish(std::move(transfer), absl::OkStatus());
  return UCS_OK;
}

ucs_status_t UcxReceiver::Receive(std::unique_ptr<Transfer> transfer, void* descriptor) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.cb.recv_am = &UcxReceiver::OnReceived;
  param.user_data = transfer.get();
  transfers_.insert(transfer.get());
  void* request = Ucx().ucp_am_recv_data_nbx(ucx_->worker(), descriptor, transfer->bytes.data(),
                                             transfer->bytes.size(), &param);
  if (UCS_PTR_IS_ERR(request)) {
    transfers_.erase(transfer.get());
    const ucs_status_t status = UCS_PTR_STATUS(request);
    Finish(std::move(transfer), FromUcx(status, "receive shard"));
    return status;
  }
  transfer.release();  // OnReceived takes it back
  return UCS_INPROGRESS;
}

void UcxReceiver::OnReceived(void* request, ucs_status_t status, std::size_t bytes,
                             void* user_data) {
  std::unique_ptr<Transfer> transfer(static_cast<Transfer*>(user_data));
  UcxReceiver* self = transfer->receiver;
  self->transfers_.erase(transfer.get());
  Status received = FromUcx(status, "receive shard");
  if (received.ok() && bytes != transfer->bytes.size()) {
    received = Unavailable("receive shard: fewer bytes came than were announced");
  }
  Ucx().ucp_request_free(request);
  self->Finish(std::move(transfer), received);
}

void UcxReceiver::Finish(std::unique_ptr<Transfer> transfer, const Status& received) {
  Status landed = received;
  ShardHeader& header = transfer->header;
  header.times.transfer_us = ToStageUs(SteadyNowNs() - transfer->begun_ns);
  if (landed.ok() && Crc32c(transfer->bytes) != header.crc32c[header.array]) {
    landed = DataLoss("receive shard: ", header.shard.ToString(), " array ", int{header.array},
                      ": crc32c mismatch");
  }
  const StatusOr<bool> counted = ring_.FinishReceive(header, landed);
  if (!counted.ok()) LogDebug(Describe(counted.status()));
  if (counted.ok() && *counted) bytes_counted_ += ring_.layout().BytesOf(header.grant.count);
  if (received.ok() && transfer->endpoint != nullptr) NoteTransport(transfer->endpoint);
}

void UcxReceiver::NoteTransport(ucp_ep_h endpoint) {
  const std::lock_guard lock(transport_mu_);
  if (!transport_.empty()) return;
  auto transport = ucx_->TransportOf(endpoint);
  if (!transport.ok()) {
    ring_.Fail(transport.status());
    return;
  }
  transport_ = *transport;
}

std::string UcxReceiver::Transport() const {
  const std::lock_guard lock(transport_mu_);
  return transport_;
}

bool UcxReceiver::EndTransfer(const ShardId& shard, const LeaseNumber& lease) {
  if (!ring_.Receiving(shard, lease)) return true;
  ucx_->Post([this, shard, lease] {
    for (const Transfer* transfer : transfers_) {
      const ShardHeader& header = transfer->header;
      const bool fenced = header.shard == shard && header.lease <= lease;
      if (fenced && transfer->endpoint != nullptr) broken_.insert(transfer->endpoint);
    }
  });
  return false;
}

}  // namespace

StatusOr<std::unique_ptr<RemoteReceiver>> StartUcxReceiver(Ring& ring,
                                                           const RemoteReceiver::Options& options) {
  auto receiver = std::make_unique<UcxReceiver>(ring, options);
  PB_RETURN_IF_ERROR(receiver->Open());
  return std::unique_ptr<RemoteReceiver>(std::move(receiver));
}

}  // namespace patchbay::data
