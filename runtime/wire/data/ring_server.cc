#include "runtime/wire/data/ring_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/memory/gpu_processes.h"
#include "runtime/wire/data/ring_greeting.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::data {
namespace {

constexpr std::int64_t kRemotePollMs = 20;
constexpr std::int64_t kDevicePollMs = 20;
constexpr std::int64_t kFolderPollMs = 20;  ///< where the kernel has no pidfd
constexpr int kMessagesPerTurn = 64;

std::int64_t NowMs() { return SteadyNowNs() / 1'000'000; }

/// The subject of an epoll event, packed into its 64 bits of user data.
enum class Source : std::uint64_t { kListener, kWake, kSocket, kExit, kBarred };
std::uint64_t Pack(Source source, std::uint64_t id) {
  return id << 3 | static_cast<std::uint64_t>(source);
}

/// A process that connected. It outlives its socket: the mapping does too.
struct Peer {
  pid_t pid = 0;
  ExitWatch exit;
  UniqueFd socket;
  bool admitted = false;  ///< it was given the ring
  Nonce nonce{};
  std::optional<Hello> waiting;  ///< it proved the secret while no peer is admitted
  std::int64_t greeting_deadline_ms = 0;
  std::optional<std::int64_t> ended_ms;  ///< it ended then; the device may not be done with it
  bool let_go = false;                   ///< it hung up: it has closed the ring's memory before
};

/// A process that may not connect any more; without a watch it is known by its number for good.
struct BarredPeer {
  pid_t pid = 0;
  std::uint32_t incarnation = 0;  ///< scheduler of the newest lease that it was fenced under
  ExitWatch exit;
};

/// A fence that waits for proof. After its deadline it has been answered and `resting_slot` waits.
struct OpenFence {
  FenceRequest request;
  std::int64_t deadline_ms = 0;
  std::vector<std::uint64_t> holders;  ///< peers not yet proven gone
  bool answered = false;
  std::optional<std::uint32_t> resting_slot;
};

struct QueuedFence {
  FenceRequest request;
  bool already_counted = false;
};

class EpollRingServer final : public RingServer {
 public:
  EpollRingServer(Ring& ring, Options options) : ring_(ring), options_(std::move(options)) {}
  ~EpollRingServer() override;

  Status Open();
  const std::string& socket_name() const override { return name_; }
  void Fence(const FenceRequest& request) override;
  std::vector<std::int64_t> Holders() const override;
  std::vector<std::int64_t> StopAdmitting() override;
  void AdmitSince(std::uint32_t incarnation) override;

 private:
  void Run();
  int WaitMs() const;
  Status Watch(int fd, Source source, std::uint64_t id);
  Status WatchExit(const ExitWatch& exit, Source source, std::uint64_t id);
  void AskFolders();
  void Dispatch(std::uint64_t packed);
  void Accept();
  void ReadPeer(std::uint64_t id);
  Status Greet(Peer& peer, std::span<const std::byte> message);
  bool TakeIn(const Peer& peer, const Hello& hello, Status& refused);
  Status Offer(Peer& peer, const Hello& hello);
  void GreetWaiting();
  Status CountReport(std::span<const std::byte> message);
  void CloseSocket(std::uint64_t id, const Status& why);
  void ForgetPeer(std::uint64_t id);
  void OnExit(std::uint64_t id);
  void AskDevice();
  void AwaitDeviceClosed();
  bool MayHaveDeviceOpen(Peer& peer) const;
  bool IsBarred(pid_t pid) const;
  void Bar(pid_t pid, std::uint32_t incarnation);

  void TakeFences();
  void BeginFence(const QueuedFence& queued);
  void CheckFences();
  bool IsProven(const OpenFence& fence) const;
  void AnswerUnproven(OpenFence& fence);
  void Answer(const FenceRequest& request, bool already_counted, Status status);
  void DropLateGreetings();

  Ring& ring_;
  Options options_;
  std::string name_;
  UniqueFd listener_, epoll_, wake_;
  std::map<std::uint64_t, Peer> peers_;
  std::map<std::uint64_t, BarredPeer> barred_;  ///< fenced before they connected
  std::vector<OpenFence> fences_;
  std::uint64_t next_id_ = 1;
  bool asks_folders_ = false;
  bool is_shut_ = false;  ///< more processes were fenced than `barred_` may hold

  mutable std::mutex holders_mu_;
  std::multiset<pid_t> holders_;  ///< guarded by holders_mu_, as are the two below
  bool admits_ = true;
  std::uint32_t since_ = 0;  ///< the oldest incarnation whose leases it admits for

  std::mutex queue_mu_;
  std::deque<QueuedFence> queue_;  ///< guarded by queue_mu_
  bool stopping_ = false;          ///< guarded by queue_mu_
  std::thread thread_;
};

EpollRingServer::~EpollRingServer() {
  {
    const std::lock_guard lock(queue_mu_);
    stopping_ = true;
  }
  if (wake_.valid()) eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  AwaitDeviceClosed();
}

/// CUDA does not define what happens to device memory that is freed while another process has it
/// open. The end of the stream tells workers to unmap it, and they answer by closing the
/// connection.
void EpollRingServer::AwaitDeviceClosed() {
  if (!ring_.memory().device_handle().has_value()) return;
  listener_.Close();
  for (const auto& [id, peer] : peers_) {
    if (peer.socket.valid()) (void)shutdown(peer.socket.get(), SHUT_WR);
  }
  const std::int64_t deadline_ms = NowMs() + options_.proof_deadline_ms;
  const auto open = [this](auto& entry) { return MayHaveDeviceOpen(entry.second); };
  for (;;) {
    const auto holder = std::find_if(peers_.begin(), peers_.end(), open);
    if (holder == peers_.end()) return;
    if (NowMs() >= deadline_ms) {
      LogWarning(StrCat("ring: worker process ", holder->second.pid,
                        " did not let go of the device slots; their memory is kept until this "
                        "process ends"));
      return ring_.KeepDeviceMemory();
    }
    pollfd watched{holder->second.socket.get(), POLLIN, 0};
    (void)poll(&watched, 1, kDevicePollMs);
  }
}

bool EpollRingServer::MayHaveDeviceOpen(Peer& peer) const {
  if (!peer.admitted || peer.let_go) return false;
  std::array<std::byte, kMaxGreetingBytes> buffer;
  while (peer.socket.valid()) {
    const auto size = ReceiveMessage(peer.socket.get(), buffer);
    if (!size.ok()) break;
    if (*size == 0) return !(peer.let_go = true);
  }
  if (!peer.ended_ms.has_value() && peer.exit.Ended()) peer.ended_ms = NowMs();
  return !peer.ended_ms.has_value() || options_.left_device == nullptr ||
         !options_.left_device(peer.pid, NowMs() - *peer.ended_ms);
}

Status EpollRingServer::Open() {
  PB_ASSIGN_OR_RETURN(listener_, ListenAbstract("patchbay-ring", &name_));
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return FromErrno("open", "ring server", errno);
  PB_RETURN_IF_ERROR(Watch(listener_.get(), Source::kListener, 0));
  PB_RETURN_IF_ERROR(Watch(wake_.get(), Source::kWake, 0));
  const auto device = ring_.memory().device_handle();
  if (options_.left_device == nullptr && device.has_value()) {
    options_.left_device = [listed = memory::GpuProcesses::Of(device->gpu_uuid)](
                               pid_t pid, std::int64_t ended_ms) {
      return listed.HasLeft(pid, ended_ms);
    };
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

Status EpollRingServer::Watch(int fd, Source source, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = Pack(source, id);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return FromErrno("watch descriptor", "ring server", errno);
  }
  return absl::OkStatus();
}

/// A proof that no descriptor signals is polled (AskFolders).
Status EpollRingServer::WatchExit(const ExitWatch& exit, Source source, std::uint64_t id) {
  if (exit.proof() == ExitProof::kPidfd) return Watch(exit.fd(), source, id);
  asks_folders_ = true;
  return absl::OkStatus();
}

void EpollRingServer::AskFolders() {
  if (!asks_folders_) return;
  const auto ended = [](const auto& entry) {
    return entry.second.exit.proof() == ExitProof::kFolder && entry.second.exit.Ended();
  };
  std::vector<std::uint64_t> gone;
  for (const auto& entry : peers_) {
    if (ended(entry)) gone.push_back(entry.first);
  }
  for (const std::uint64_t id : gone) OnExit(id);
  std::erase_if(barred_, ended);
}

/// The kernel reports that a process has ended. If it could write to device memory, this is no
/// proof: the driver may still be at work for it.
void EpollRingServer::OnExit(std::uint64_t id) {
  const auto it = peers_.find(id);
  if (it == peers_.end() || it->second.ended_ms.has_value()) return;
  if (!it->second.admitted || options_.left_device == nullptr) return ForgetPeer(id);
  it->second.ended_ms = NowMs();
  if (it->second.exit.proof() == ExitProof::kPidfd) {
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.exit.fd(), nullptr);
  }
}

void EpollRingServer::AskDevice() {
  std::vector<std::uint64_t> left;
  for (const auto& [id, peer] : peers_) {
    if (!peer.ended_ms.has_value()) continue;
    if (options_.left_device(peer.pid, NowMs() - *peer.ended_ms)) left.push_back(id);
  }
  for (const std::uint64_t id : left) ForgetPeer(id);
}

void EpollRingServer::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int n = epoll_wait(epoll_.get(), events.data(), events.size(), WaitMs());
    {
      const std::lock_guard lock(queue_mu_);
      if (stopping_) return;
    }
    for (int i = 0; i < n; ++i) Dispatch(events[static_cast<std::size_t>(i)].data.u64);
    AskFolders();
    AskDevice();
    GreetWaiting();
    TakeFences();
    CheckFences();
    DropLateGreetings();
  }
}

int EpollRingServer::WaitMs() const {
  std::int64_t until = INT64_MAX;
  const std::int64_t now = NowMs();
  for (const OpenFence& fence : fences_) {
    if (fence.answered) continue;
    const bool polls = fence.holders.empty() && options_.remote_gone != nullptr;
    until = std::min({until, fence.deadline_ms, polls ? now + kRemotePollMs : INT64_MAX});
  }
  if (asks_folders_ && !(peers_.empty() && barred_.empty())) until = now + kFolderPollMs;
  for (const auto& [id, peer] : peers_) {
    if (peer.ended_ms.has_value()) until = std::min(until, now + kDevicePollMs);
    if (!peer.admitted && peer.socket.valid()) until = std::min(until, peer.greeting_deadline_ms);
  }
  if (until == INT64_MAX) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(until - now, 0, 60'000));
}

void EpollRingServer::Dispatch(std::uint64_t packed) {
  const std::uint64_t id = packed >> 3;
  switch (static_cast<Source>(packed & 7)) {
    case Source::kListener:
      return Accept();
    case Source::kWake: {
      eventfd_t count = 0;
      eventfd_read(wake_.get(), &count);
      return;
    }
    case Source::kSocket:
      return ReadPeer(id);
    case Source::kExit:
      return OnExit(id);
    case Source::kBarred:
      barred_.erase(id);
      return;
  }
}

// ---------------------------------------------------------------- peers

void EpollRingServer::Accept() {
  UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return;
  auto identified = IdentifyPeer(socket.get());
  if (!identified.ok()) return LogWarning(Describe(identified.status()));
  if (identified->uid != geteuid() && identified->uid != 0) {
    return LogWarning(StrCat("ring: a process of user ", identified->uid, " was refused"));
  }
  if (peers_.size() >= options_.peers_max) return LogWarning("ring: too many worker processes");
  if (IsBarred(identified->pid)) return;
  auto exit = WatchPeer(socket.get(), *identified, options_.proof);
  if (!exit.ok()) return LogWarning(Describe(exit.status()));
  const std::uint64_t id = next_id_++;
  Peer& peer = peers_[id];
  peer.pid = identified->pid;
  peer.exit = *std::move(exit);
  peer.socket = std::move(socket);
  peer.greeting_deadline_ms = NowMs() + options_.greeting_deadline_ms;
  FillRandom(peer.nonce);
  Status status = Watch(peer.socket.get(), Source::kSocket, id);
  if (status.ok()) status = WatchExit(peer.exit, Source::kExit, id);
  if (status.ok()) status = SendMessage(peer.socket.get(), EncodeChallenge({peer.nonce}));
  if (!status.ok()) CloseSocket(id, status);
}

void EpollRingServer::ReadPeer(std::uint64_t id) {
  std::array<std::byte, kMaxGreetingBytes> buffer;
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    const auto it = peers_.find(id);
    if (it == peers_.end() || !it->second.socket.valid()) return;
    Peer& peer = it->second;
    const auto size = ReceiveMessage(peer.socket.get(), buffer);
    if (absl::IsDeadlineExceeded(size.status())) return;
    if (!size.ok()) return CloseSocket(id, size.status());
    if (*size == 0) {
      peer.let_go = true;
      return CloseSocket(id, absl::OkStatus());
    }
    const auto message = std::span<const std::byte>(buffer).first(*size);
    const Status status = peer.admitted ? CountReport(message) : Greet(peer, message);
    if (!status.ok()) return CloseSocket(id, status);
  }
}

Status EpollRingServer::Greet(Peer& peer, std::span<const std::byte> message) {
  PB_ASSIGN_OR_RETURN(const Hello hello, DecodeHello(message, peer.nonce, options_.secret));
  if (hello.stream != options_.stream) {
    return InvalidArgument("greet worker: it asks for another stream");
  }
  return Offer(peer, hello);
}

/// Whether the peer holds the ring from now on. Not so, and `refused` OK: it is to wait.
bool EpollRingServer::TakeIn(const Peer& peer, const Hello& hello, Status& refused) {
  const std::lock_guard lock(holders_mu_);
  if (!admits_) return false;
  if (hello.incarnation < since_) {
    refused = FailedPrecondition("greet worker: its lease is of scheduler incarnation ",
                                 hello.incarnation, ", the ring is filled under ", since_);
    return false;
  }
  holders_.insert(peer.pid);
  return true;
}

Status EpollRingServer::Offer(Peer& peer, const Hello& hello) {
  if (IsBarred(peer.pid)) return FailedPrecondition("greet worker: it is fenced");
  Status refused;
  if (!TakeIn(peer, hello, refused)) {
    if (refused.ok()) peer.waiting = hello;
    return refused;
  }
  peer.waiting.reset();
  peer.admitted = true;
  RingOffer offer;
  offer.slots = ring_.SlotCount();
  offer.capacity = ring_.layout().capacity();
  offer.host_stride = ring_.layout().host_stride();
  offer.device_stride = ring_.layout().device_stride();
  offer.layout = ring_.batch_layout().ToDigest();
  offer.device = ring_.memory().device_handle();
  return SendMessage(peer.socket.get(), EncodeRingOffer(offer, hello.nonce, options_.secret),
                     ring_.memory().host_fd());
}

/// Greets the workers that asked while no peer was admitted.
void EpollRingServer::GreetWaiting() {
  std::vector<std::uint64_t> waiting;
  for (const auto& [id, peer] : peers_) {
    if (peer.waiting.has_value()) waiting.push_back(id);
  }
  for (const std::uint64_t id : waiting) {
    Peer& peer = peers_.at(id);
    const Hello hello = *peer.waiting;
    const Status greeted = Offer(peer, hello);
    if (!greeted.ok()) CloseSocket(id, greeted);
  }
}

std::vector<std::int64_t> EpollRingServer::Holders() const {
  const std::lock_guard lock(holders_mu_);
  return {holders_.begin(), holders_.end()};
}

std::vector<std::int64_t> EpollRingServer::StopAdmitting() {
  const std::lock_guard lock(holders_mu_);
  admits_ = false;
  return {holders_.begin(), holders_.end()};
}

void EpollRingServer::AdmitSince(std::uint32_t incarnation) {
  {
    const std::lock_guard lock(holders_mu_);
    admits_ = true;
    since_ = incarnation;
  }
  eventfd_write(wake_.get(), 1);
}

/// Only a message that no worker of this stream can have sent closes the connection; a refused
/// shard is normal and is counted by the ring.
Status EpollRingServer::CountReport(std::span<const std::byte> message) {
  PB_ASSIGN_OR_RETURN(const ShardHeader header, DecodeShardHeader(message, options_.secret));
  const Status counted = ring_.CountWritten(header);
  if (!counted.ok()) LogDebug(Describe(counted));
  return absl::OkStatus();
}

void EpollRingServer::CloseSocket(std::uint64_t id, const Status& why) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  if (!why.ok()) LogWarning(StrCat("ring: worker process ", it->second.pid, ": ", Describe(why)));
  it->second.socket.Close();
  if (!it->second.admitted) peers_.erase(it);
}

void EpollRingServer::ForgetPeer(std::uint64_t id) {
  const auto it = peers_.find(id);
  if (it == peers_.end()) return;
  // Reports of the process from before its death still count.
  ReadPeer(id);
  const auto again = peers_.find(id);
  if (again != peers_.end()) {
    if (again->second.admitted) {
      const std::lock_guard lock(holders_mu_);
      holders_.erase(holders_.find(again->second.pid));
    }
    peers_.erase(again);
  }
  for (OpenFence& fence : fences_) std::erase(fence.holders, id);
}

/// A process that gets the ring for leases of this scheduler writes under no former one's.
bool EpollRingServer::IsBarred(pid_t pid) const {
  const std::lock_guard lock(holders_mu_);
  return is_shut_ || std::any_of(barred_.begin(), barred_.end(), [&](const auto& entry) {
           return entry.second.pid == pid && entry.second.incarnation >= since_;
         });
}

/// A fenced process that has no mapping gets none from the scheduler whose lease was fenced. When
/// they are too many to remember, no process gets one any more.
void EpollRingServer::Bar(pid_t pid, std::uint32_t incarnation) {
  for (auto& [id, peer] : barred_) {
    if (peer.pid != pid) continue;
    peer.incarnation = std::max(peer.incarnation, incarnation);
    return;
  }
  if (is_shut_) return;
  if (barred_.size() >= options_.peers_max) {
    is_shut_ = true;
    return LogWarning("ring: too many fenced worker processes: no further one is admitted");
  }
  auto exit = ExitWatch::Of(pid, options_.proof);
  if (absl::IsNotFound(exit.status())) return;
  const std::uint64_t id = next_id_++;
  const bool watched = exit.ok() && WatchExit(*exit, Source::kBarred, id).ok();
  barred_[id] = BarredPeer{pid, incarnation, watched ? *std::move(exit) : ExitWatch()};
}

void EpollRingServer::DropLateGreetings() {
  const std::int64_t now = NowMs();
  std::erase_if(peers_, [now](const auto& entry) {
    return !entry.second.admitted && now >= entry.second.greeting_deadline_ms;
  });
}

// ---------------------------------------------------------------- fencing

void EpollRingServer::Fence(const FenceRequest& request) {
  const bool counted = !ring_.Fence(request.shard, request.lease);
  {
    const std::lock_guard lock(queue_mu_);
    queue_.push_back(QueuedFence{request, counted});
  }
  eventfd_write(wake_.get(), 1);
}

void EpollRingServer::TakeFences() {
  std::deque<QueuedFence> taken;
  {
    const std::lock_guard lock(queue_mu_);
    taken.swap(queue_);
  }
  for (const QueuedFence& queued : taken) BeginFence(queued);
}

void EpollRingServer::BeginFence(const QueuedFence& queued) {
  if (queued.already_counted) return Answer(queued.request, true, absl::OkStatus());
  OpenFence fence;
  fence.request = queued.request;
  fence.deadline_ms = NowMs() + options_.proof_deadline_ms;
  const auto pid = static_cast<pid_t>(queued.request.worker_pid);
  if (pid > 0) {
    for (const auto& [id, peer] : peers_) {
      if (peer.pid == pid && peer.admitted) fence.holders.push_back(id);
    }
    if (fence.holders.empty()) Bar(pid, queued.request.lease.incarnation);
  }
  fences_.push_back(std::move(fence));
}

bool EpollRingServer::IsProven(const OpenFence& fence) const {
  if (!fence.holders.empty()) return false;
  return options_.remote_gone == nullptr ||
         options_.remote_gone(fence.request.shard, fence.request.lease);
}

void EpollRingServer::CheckFences() {
  const std::int64_t now = NowMs();
  for (OpenFence& fence : fences_) {
    if (fence.answered) continue;
    if (IsProven(fence)) {
      Answer(fence.request, false, absl::OkStatus());
      fence.answered = true;
    } else if (now >= fence.deadline_ms) {
      AnswerUnproven(fence);
    }
  }
  std::erase_if(fences_, [this](const OpenFence& fence) {
    if (!fence.answered || !fence.holders.empty()) return false;
    if (fence.resting_slot.has_value()) ring_.ProveGone(*fence.resting_slot);
    return true;
  });
}

/// No proof in time: the batch leaves the slot. The old slot rests as long as a transfer runs, or
/// until the kernel reports the process's death.
void EpollRingServer::AnswerUnproven(OpenFence& fence) {
  fence.answered = true;
  auto resting = ring_.Evacuate(fence.request.shard, fence.request.grant);
  if (resting.ok()) {
    fence.resting_slot = *resting;
    return Answer(fence.request, false, absl::OkStatus());
  }
  const std::string holder = fence.request.worker_pid > 0
                                 ? StrCat("worker process ", fence.request.worker_pid)
                                 : StrCat("a transfer of lease ", fence.request.lease.ToString());
  Answer(fence.request, false,
         Annotate(resting.status(), StrCat("fence shard ", fence.request.shard.ToString(), ": ",
                                           holder, " may still write")));
}

void EpollRingServer::Answer(const FenceRequest& request, bool already_counted, Status status) {
  if (options_.fenced == nullptr) return;
  FenceOutcome outcome;
  outcome.request = request;
  outcome.already_counted = already_counted;
  outcome.row = ring_.ReportBatch(request.shard, request.grant);
  outcome.status = std::move(status);
  options_.fenced(outcome);
}

}  // namespace

StatusOr<std::unique_ptr<RingServer>> RingServer::Start(Ring& ring, Options options) {
  auto server = std::make_unique<EpollRingServer>(ring, std::move(options));
  PB_RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<RingServer>(std::move(server));
}

}  // namespace patchbay::data
