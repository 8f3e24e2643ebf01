// The worker's end of delivery over UCX.

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/ucx_worker.h"

namespace patchbay::data {
namespace {

struct Shipment;

/// One array of a shard on its way.
struct Parcel {
  Shipment* shipment = nullptr;
  std::array<std::byte, kShardHeaderBytes> header;
  std::span<const std::byte> payload;
};

/// One Send, owned by its caller, who waits until `done`.
struct Shipment {
  std::string address;  ///< address of the trainer's UCX worker, in text
  StreamSecret secret{};
  std::vector<Parcel> parcels;
  std::int64_t deadline_ms = 0;
  ucp_ep_h endpoint = nullptr;
  bool timed_out = false;
  /// Requests that have not completed; only when none is left may the payload be reused.
  std::size_t running = 0;
  Status outcome;  ///< result of the requests; the sender's thread's until Finish hands it over

  std::mutex done_mu;
  std::condition_variable done_changed;
  bool done = false;  ///< guarded by done_mu
  Status status;      ///< guarded by done_mu
};

/// A trainer this side is connected to.
struct Trainer {
  ucp_ep_h endpoint = nullptr;
  std::vector<std::byte> hello;  ///< UCX may read it until the endpoint is closed
};

class UcxSender final : public RemoteSender {
 public:
  explicit UcxSender(const Options& options) : options_(options) {}
  ~UcxSender() override;

  Status Open();
  Status Send(const RemoteTarget& target, ShardHeader header, Payload payload) override;
  void Forget(const std::string& address) override;
  std::string Transport() const override;

 private:
  static void OnEndpointError(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* parcel);

  void Run();
  int WaitMs() const;
  void Begin(Shipment* shipment);
  Status Start(Parcel& parcel);
  StatusOr<ucp_ep_h> EndpointTo(const Shipment& shipment);
  Status Introduce(const Trainer& trainer);
  void CloseBroken();
  void EndLate();
  void Finish(Shipment* shipment, Status status);
  Status CheckTransport(ucp_ep_h endpoint);

  const Options options_;
  std::unique_ptr<UcxWorker> ucx_;
  std::map<std::string, Trainer> trainers_;  ///< by address
  std::set<ucp_ep_h> broken_;                ///< to be closed outside UCX's callbacks
  std::set<Shipment*> running_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex transport_mu_;
  std::string transport_;  ///< guarded by transport_mu_
  std::thread thread_;
};

UcxSender::~UcxSender() {
  stopping_ = true;
  if (ucx_ != nullptr && thread_.joinable()) {
    ucx_->Post([] {});
    thread_.join();
  }
}

Status UcxSender::Open() {
  PB_ASSIGN_OR_RETURN(ucx_, UcxWorker::Open(options_.network));
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

Status UcxSender::Send(const RemoteTarget& target, ShardHeader header, Payload payload) {
  PB_RETURN_IF_ERROR(SealHeader(header, payload));
  Shipment shipment;
  PB_ASSIGN_OR_RETURN(shipment.address, AddressUnder(kUcxScheme, target.address));
  shipment.secret = target.secret;
  shipment.deadline_ms = SteadyNowMs() + options_.timeout_ms;
  shipment.parcels.resize(payload.size());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    Parcel& parcel = shipment.parcels[i];
    parcel.shipment = &shipment;
    parcel.payload = payload[i];
    header.array = static_cast<std::uint8_t>(i);
    EncodeShardHeader(header, target.secret, parcel.header);
  }
  ucx_->Post([this, &shipment] { Begin(&shipment); });
  std::unique_lock lock(shipment.done_mu);
  shipment.done_changed.wait(lock, [&shipment] { return shipment.done; });
  return Annotate(shipment.status, StrCat("send shard ", header.shard.ToString()));
}

void UcxSender::Forget(const std::string& address) {
  ucx_->Post([this, address] {
    const auto it = trainers_.find(address.substr(std::min(address.size(), kUcxScheme.size())));
    if (it != trainers_.end()) broken_.insert(it->second.endpoint);
  });
}

void UcxSender::Run() {
  while (!stopping_ || !running_.empty()) {
    if (stopping_) {
      for (const auto& [address, trainer] : trainers_) broken_.insert(trainer.endpoint);
    }
    CloseBroken();
    ucx_->Progress(broken_.empty() ? WaitMs() : 0);
    EndLate();
  }
  for (const auto& [address, trainer] : trainers_) broken_.insert(trainer.endpoint);
  CloseBroken();
}

int UcxSender::WaitMs() const {
  if (running_.empty()) return -1;
  std::int64_t until = INT64_MAX;
  for (const Shipment* s : running_) {
    if (!s->timed_out) until = std::min(until, s->deadline_ms);
  }
  if (until == INT64_MAX) return 100;
  return static_cast<int>(std::clamp<std::int64_t>(until - SteadyNowMs(), 0, 60'000));
}

StatusOr<ucp_ep_h> UcxSender::EndpointTo(const Shipment& shipment) {
  const auto it = trainers_.find(shipment.address);
  if (it != trainers_.end()) return it->second.endpoint;
  PB_ASSIGN_OR_RETURN(const std::vector<std::byte> to, ParseUcxAddress(shipment.address));
  PB_ASSIGN_OR_RETURN(const ucp_ep_h endpoint,
                      ucx_->EndpointTo(to, &UcxSender::OnEndpointError, this));
  Trainer& trainer = trainers_[shipment.address];
  trainer = {endpoint, EncodeHello(ucx_->address(), shipment.secret)};
  Status introduced = Introduce(trainer);
  if (introduced.ok()) return endpoint;
  broken_.insert(endpoint);
  return introduced;
}

/// Tells the trainer where this side is, before the first shard: messages of one endpoint stay in
/// order.
Status UcxSender::Introduce(const Trainer& trainer) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  void* request = Ucx().ucp_am_send_nbx(trainer.endpoint, kHelloMessageId, nullptr, 0,
                                        trainer.hello.data(), trainer.hello.size(), &param);
  if (UCS_PTR_IS_ERR(request)) return FromUcx(UCS_PTR_STATUS(request), "introduce this sender");
  if (request != nullptr)
    Ucx().ucp_request_free(request);  // whether it arrived shows with the shard
  return absl::OkStatus();
}

void UcxSender::Begin(Shipment* shipment) {
  if (stopping_) return Finish(shipment, Cancelled("the sender stops"));
  auto endpoint = EndpointTo(*shipment);
  if (!endpoint.ok()) return Finish(shipment, endpoint.status());
  shipment->endpoint = *endpoint;
  running_.insert(shipment);
  for (Parcel& parcel : shipment->parcels) {
    Status started = Start(parcel);
    if (started.ok()) continue;
    shipment->outcome = std::move(started);
    broken_.insert(*endpoint);
    break;
  }
}

Status UcxSender::Start(Parcel& parcel) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_NO_IMM_CMPL |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.flags = UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY;
  param.cb.send = &UcxSender::OnSent;
  param.user_data = &parcel;
  ++parcel.shipment->running;
  void* request = Ucx().ucp_am_send_nbx(parcel.shipment->endpoint, kShardMessageId,
                                        parcel.header.data(), parcel.header.size(),
                                        parcel.payload.data(), parcel.payload.size(), &param);
  if (!UCS_PTR_IS_ERR(request)) return absl::OkStatus();
  --parcel.shipment->running;
  return FromUcx(UCS_PTR_STATUS(request), "start");
}

void UcxSender::OnSent(void* request, ucs_status_t status, void* user_data) {
  Ucx().ucp_request_free(request);
  Shipment* shipment = static_cast<Parcel*>(user_data)->shipment;
  --shipment->running;
  if (shipment->timed_out) status = UCS_ERR_TIMED_OUT;
  if (shipment->outcome.ok()) shipment->outcome = FromUcx(status, "transfer");
}

void UcxSender::OnEndpointError(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  LogDebug(Describe(FromUcx(status, "remote sender: the trainer went away")));
  static_cast<UcxSender*>(self)->broken_.insert(endpoint);
}

void UcxSender::CloseBroken() {
  while (!broken_.empty()) {
    const ucp_ep_h endpoint = *broken_.begin();
    broken_.erase(broken_.begin());
    const auto known =
        std::find_if(trainers_.begin(), trainers_.end(),
                     [endpoint](const auto& entry) { return entry.second.endpoint == endpoint; });
    if (known == trainers_.end()) continue;
    ucx_->CloseByForce(endpoint);
    trainers_.erase(known);  // its hello was read until now
  }
}

/// A shard that is late takes its endpoint with it: after that its request is sure to complete.
void UcxSender::EndLate() {
  const std::int64_t now = SteadyNowMs();
  std::vector<Shipment*> ended;
  for (Shipment* shipment : running_) {
    if (shipment->running == 0) {
      ended.push_back(shipment);
    } else if (!shipment->timed_out && now >= shipment->deadline_ms) {
      shipment->timed_out = true;
      broken_.insert(shipment->endpoint);
    }
  }
  for (Shipment* shipment : ended) {
    Status outcome = std::move(shipment->outcome);
    if (outcome.ok()) outcome = CheckTransport(shipment->endpoint);
    Finish(shipment, std::move(outcome));
  }
}

void UcxSender::Finish(Shipment* shipment, Status status) {
  running_.erase(shipment);
  const std::lock_guard lock(shipment->done_mu);
  shipment->status = std::move(status);
  shipment->done = true;
  shipment->done_changed.notify_one();  // under the lock: the waiter owns the condition variable
}

Status UcxSender::CheckTransport(ucp_ep_h endpoint) {
  const std::lock_guard lock(transport_mu_);
  if (!transport_.empty()) return absl::OkStatus();
  const bool alive = std::any_of(trainers_.begin(), trainers_.end(), [endpoint](const auto& entry) {
    return entry.second.endpoint == endpoint;
  });
  if (!alive || broken_.contains(endpoint)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(transport_, ucx_->TransportOf(endpoint));
  return absl::OkStatus();
}

std::string UcxSender::Transport() const {
  const std::lock_guard lock(transport_mu_);
  return transport_;
}

}  // namespace

StatusOr<std::unique_ptr<RemoteSender>> StartUcxSender(const RemoteSender::Options& options) {
  auto sender = std::make_unique<UcxSender>(options);
  PB_RETURN_IF_ERROR(sender->Open());
  return std::unique_ptr<RemoteSender>(std::move(sender));
}

}  // namespace patchbay::data
