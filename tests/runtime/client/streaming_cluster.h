// A cluster in the test's own process: the scheduler's core, and workers that are threads. The
// control session is replaced; rings, sockets, memory and every decision are the real ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "runtime/client/stream.h"
#include "runtime/format/json/json.h"
#include "runtime/model/stream/planned_stream.h"
#include "runtime/os/host_identity.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/protocol/messages.h"
#include "tests/scheduler/in_process_scheduler.h"

namespace patchbay::client::testing {

using protocol::Body;

inline constexpr JobId kJob = 1;                   ///< the first of a scheduler
inline constexpr std::int64_t kPatience = 20'000;  ///< ms; only a failing test waits this long

inline StreamGeometry TestGeometry(std::uint32_t world_size = 1) {
  StreamGeometry g;
  g.patches_per_epoch = 22;
  g.global_batch = 8;
  g.world_size = world_size;
  g.shard_patches = 2;
  return g;
}

inline BatchLayout TestLayout() {
  return {{{"image", DType::kFloat16, {3, 4, 5}, ArrayMemory::kStream},
           {"ordinal", DType::kInt64, {}, ArrayMemory::kHost}}};
}

inline std::string TestPlan() { return DumpJson({{"layout", ToJson(TestLayout())}}); }

inline std::string PlanResult(const StreamGeometry& g) {
  PlannedStream planned;
  planned.plan = TestPlan();
  planned.geometry = g;
  return EncodePlannedStream(planned);
}

/// The byte every byte of a patch has; its top bit is 0, as a negative ordinal is padding's.
inline std::byte PatchByte(std::uint32_t epoch, std::uint64_t ordinal) {
  return static_cast<std::byte>((17 * epoch + 7 * ordinal + 1) & 0x7f);
}

/// A stream job that is planned, for one rank to attach to. Thread-safe.
class StreamingCluster {
 public:
  /// Why the stream could not be planned; OK: it was.
  explicit StreamingCluster(const StreamGeometry& geometry = TestGeometry(),
                            const Outcome& planned = {})
      : geometry_(geometry),
        scheduler_(Times(), [this](scheduler::SendAction&& send) { Deliver(std::move(send)); }) {
    const std::lock_guard lock(mu_);
    Start();
    AddWorker(0);
    protocol::SubmitJob submit;
    submit.submission_key = "key";
    submit.kind = "stream";
    submit.root.op = "stream.plan";
    submit.world_size = geometry.world_size;
    Tell(kTrainer, submit, 1);
    EXPECT_TRUE(planning_.has_value()) << "the job's plan was not leased";
    protocol::TasksFinished finished;
    finished.items.push_back(
        {planning_->lease, planning_->task, planned, PlanResult(geometry), {}, 0, 0});
    Tell(kWorker0, finished);
    Leave(0);
    clock_ = std::thread([this] { RunClock(); });
  }
  ~StreamingCluster() {
    StopWorkers();
    clock_.join();
  }

  Stream::OpenSession Opener() {
    return [this](control::EventLoop& loop, control::Session::Callbacks callbacks)
               -> StatusOr<std::unique_ptr<control::Session>> {
      const std::lock_guard lock(mu_);
      loop_ = &loop;
      callbacks_ = std::move(callbacks);
      loop.Post(callbacks_.on_connected);
      return std::unique_ptr<control::Session>(new InProcessSession(*this));
    };
  }

  void StartWorkers(int count) {
    const std::lock_guard lock(mu_);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t index = next_worker_++;
      AddWorker(index);
      threads_.emplace_back([this, index] { Work(index); });
    }
  }
  /// Gives a lease to a worker that never works on it.
  protocol::ShardLease LeaseToAFrozenWorker() {
    std::unique_lock lock(mu_);
    frozen_ = next_worker_++;
    AddWorker(frozen_);
    Worker& worker = workers_[frozen_];
    changed_.wait(lock, [&] { return !worker.leases.empty(); });
    return worker.leases.front();
  }
  /// Its process is killed: what it held is fenced and made by others.
  void KillTheFrozenWorker() {
    const std::lock_guard lock(mu_);
    Leave(frozen_);
  }
  void TellTrainer(Body fact) {
    const std::lock_guard lock(mu_);
    loop_->Post([this, fact = std::move(fact)] { callbacks_.on_fact(fact); });
  }
  /// The scheduler dies and starts from its journal; its peers come back and say what they hold.
  void Restart() {
    const std::lock_guard lock(mu_);
    connected_ = false;
    Start();
    for (const auto& [index, worker] : workers_) Register(index);
    loop_->Post([this] {
      callbacks_.on_lost(absl::UnavailableError("it died"));
      {
        const std::lock_guard inner(mu_);
        connected_ = true;
      }
      callbacks_.on_connected();
    });
  }
  /// Answers no request from now on.
  void FallSilent() { silent_ = true; }
  void Lose(const Status& why) {
    const std::lock_guard lock(mu_);
    connected_ = false;
    loop_->Post([this, why] { callbacks_.on_lost(why); });
  }
  /// Changes what the trainer is answered from now on; before it attaches.
  void ChangeAttached(std::function<StatusOr<Body>(protocol::TrainerAttached)> change) {
    const std::lock_guard lock(mu_);
    change_attached_ = std::move(change);
  }
  /// Refuses to let the trainer attach from now on.
  void RefuseAttach(const Status& why) {
    ChangeAttached([why](const protocol::TrainerAttached&) { return why; });
  }
  /// Waits for a message of that kind from the trainer and takes it.
  template <typename Message>
  Message Await() {
    std::unique_lock lock(mu_);
    for (;;) {
      for (auto it = heard_.begin(); it != heard_.end(); ++it) {
        if (auto* message = std::get_if<Message>(&*it)) {
          Message found = *message;
          heard_.erase(it);
          return found;
        }
      }
      changed_.wait(lock);
    }
  }
  struct Heard {
    std::uint64_t heartbeats = 0, attaches = 0;
  };
  Heard CountHeard() {
    const std::lock_guard lock(mu_);
    return counts_;
  }
  /// Waits for so many further heartbeats of the trainer.
  void AwaitHeartbeats(std::uint64_t count) {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(
        lock, std::chrono::seconds(20),
        [this, until = counts_.heartbeats + count] { return counts_.heartbeats >= until; }))
        << "a heartbeat did not come";
  }
  std::uint64_t CountedTwice() {
    const std::lock_guard lock(mu_);
    return counted_twice_;
  }

 private:
  static constexpr scheduler::PeerId kTrainer = 1, kAgent = 2, kWorker0 = 10;

  class InProcessSession final : public control::Session {
   public:
    explicit InProcessSession(StreamingCluster& cluster) : cluster_(cluster) {}
    void Request(Body body, TimeMs, Answer answer) override {
      cluster_.loop_->Post([this, body = std::move(body), answer = std::move(answer)]() mutable {
        cluster_.Hear(std::move(body), std::move(answer));
      });
    }
    Status Tell(const Body& body) override {
      if (!connected()) return absl::UnavailableError("not connected");
      cluster_.Hear(body, nullptr);
      return absl::OkStatus();
    }
    bool connected() const override {
      const std::lock_guard lock(cluster_.mu_);
      return cluster_.connected_;
    }
    std::uint64_t incarnation() const override { return 1; }
    Status state() const override { return absl::UnavailableError("in this process"); }

   private:
    StreamingCluster& cluster_;
  };

  struct Worker {
    std::deque<protocol::ShardLease> leases;
    std::optional<protocol::ShardLease> making;
  };

  static scheduler::CoreOptions Times() {
    scheduler::CoreOptions options;
    options.suspend_trainer_ms = options.forget_trainer_ms = 20'000;  // debuggers and sanitizers
    options.suspect_ms = options.lost_ms = 20'000;
    return options;
  }
  TimeMs Now() const {
    return 1'000 + std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now() - began_)
                       .count();
  }

  // Everything below is called with mu_ held, but Hear, Work, Make and RunClock.

  void Tell(scheduler::PeerId peer, Body body, std::uint64_t request = 0) {
    scheduler_.Tell(peer, std::move(body), request, Now());
  }
  void Start() {
    EXPECT_TRUE(scheduler_.Start(Now()).ok());
    scheduler_.Join(kTrainer, scheduler::Role::kOperator, "operator");
    scheduler_.Join(kAgent, scheduler::Role::kWorker, "test");
    answers_.clear();
    protocol::RegisterAgent agent;
    agent.node = "test";
    agent.host_identity = *HostIdentity();
    agent.cpus = 100;
    agent.memory_bytes = 1 << 20;
    agent.agent_incarnation = 1;
    Tell(kAgent, agent);
  }
  void AddWorker(std::uint32_t index) {
    workers_[index];
    Register(index);
  }
  /// Shards that it has not begun are forgotten; the one that it makes it holds.
  void Register(std::uint32_t index) {
    Worker& worker = workers_[index];
    worker.leases.clear();
    protocol::RegisterWorker hello;
    hello.node = "test";
    hello.index = index;
    hello.agent_incarnation = 1;
    hello.worker_incarnation = 100 + index;
    hello.pid = index == frozen_ ? kNoProcess : getpid();
    hello.host_identity = *HostIdentity();
    hello.capacity = {1000, 0, 1 << 20};
    if (worker.making) {
      hello.held.push_back({worker.making->lease, true, {}, kJob, worker.making->shard});
    }
    scheduler_.Join(kWorker0 + index, scheduler::Role::kWorker, "test");
    Tell(kWorker0 + index, hello);
  }
  /// The worker's process ends.
  void Leave(std::uint32_t index) {
    workers_.erase(index);
    Tell(kAgent, protocol::WorkerExited{"test", index, 100 + index, SIGKILL});
    scheduler_.Leave(kWorker0 + index, Now());
  }

  void Deliver(scheduler::SendAction&& send) {
    changed_.notify_all();
    if (send.peer == kTrainer) {
      DeliverToTrainer(std::move(send));
    } else if (auto* granted = std::get_if<protocol::LeasesGranted>(&send.body)) {
      if (!granted->tasks.empty()) planning_ = granted->tasks.front();
      auto& leases = workers_[static_cast<std::uint32_t>(send.peer - kWorker0)].leases;
      leases.insert(leases.end(), granted->shards.begin(), granted->shards.end());
    } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&send.body)) {
      auto& leases = workers_[static_cast<std::uint32_t>(send.peer - kWorker0)].leases;
      std::erase_if(leases, [&](const protocol::ShardLease& lease) {
        return std::count(revoked->leases.begin(), revoked->leases.end(), lease.lease) > 0;
      });
    }
  }
  void DeliverToTrainer(scheduler::SendAction&& send) {
    if (loop_ == nullptr) return;
    if (send.request_id == 0) {
      loop_->Post([this, fact = std::move(send.body)] { callbacks_.on_fact(fact); });
      return;
    }
    const auto asked = answers_.find(send.request_id);
    if (asked == answers_.end()) return;
    StatusOr<Body> answer = std::move(send.body);
    if (const auto* failed = std::get_if<protocol::RequestFailed>(&*answer)) {
      answer = StatusOf(failed->outcome);
    } else if (const auto* attached = std::get_if<protocol::TrainerAttached>(&*answer)) {
      if (change_attached_) answer = change_attached_(*attached);
    }
    loop_->Post([tell = std::move(asked->second), answer = std::move(answer)] { tell(answer); });
    answers_.erase(asked);
  }

  void Hear(Body body, control::Session::Answer answer) {
    const std::lock_guard lock(mu_);
    if (silent_) return;
    if (std::holds_alternative<protocol::Heartbeat>(body)) {
      ++counts_.heartbeats;
    } else {
      heard_.push_back(body);
    }
    if (const auto* attach = std::get_if<protocol::AttachTrainer>(&body)) {
      ++counts_.attaches;
      endpoint_ = attach->endpoint;
    }
    if (const auto* counted = std::get_if<protocol::ShardsCounted>(&body)) {
      for (const auto& item : counted->items) {
        if (!counted_.insert(item.shard).second) ++counted_twice_;
      }
    }
    changed_.notify_all();
    if (answer != nullptr) answers_[++requests_] = std::move(answer);
    Tell(kTrainer, std::move(body), answers_.contains(requests_) ? requests_ : 0);
  }

  void RunClock() {
    std::unique_lock lock(mu_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(20), [this] { return stopping_; })) {
      Tell(kAgent, protocol::Heartbeat{});
      for (const auto& [index, worker] : workers_) Tell(kWorker0 + index, protocol::Heartbeat{});
      scheduler_.Tick(Now());
    }
  }
  void StopWorkers() {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Work(std::uint32_t index) {
    std::unique_ptr<data::MappedRing> ring;
    for (;;) {
      protocol::ShardLease lease;
      data::MappedRing::Options options;
      {
        std::unique_lock lock(mu_);
        Worker& worker = workers_[index];
        changed_.wait(lock, [&] { return stopping_ || !worker.leases.empty(); });
        if (stopping_) return;
        lease = worker.leases.front();
        worker.leases.pop_front();
        worker.making = lease;
        options.socket_name = endpoint_.socket_name;
        options.secret = *data::StreamSecretFromText(endpoint_.stream_secret);
        options.stream = kJob;
        options.incarnation = lease.lease.incarnation;
        options.layout = TestLayout();
        options.capacity = Capacity(geometry_);
      }
      const bool delivered = Make(lease, options, ring);
      const std::lock_guard lock(mu_);
      workers_[index].making.reset();
      protocol::ShardsReturned returned;
      returned.items.push_back({lease.lease, kJob, lease.shard, {}});
      if (!delivered) returned.items[0].outcome = OutcomeOf(absl::UnavailableError("no ring"));
      Tell(kWorker0 + index, returned);
    }
  }

  bool Make(const protocol::ShardLease& lease, const data::MappedRing::Options& options,
            std::unique_ptr<data::MappedRing>& ring) const {
    if (ring == nullptr) {
      auto connected = data::MappedRing::Connect(options);
      if (!connected.ok()) return false;
      ring = std::move(*connected);
    }
    const auto window = ring->Window(lease.grant);
    EXPECT_TRUE(window.ok()) << window.status();
    for (const std::span<std::byte> range : *window) {
      const std::size_t patch_bytes = range.size() / lease.grant.count;
      for (std::uint32_t p = 0; p < lease.grant.count; ++p) {
        const std::uint64_t ordinal = lease.first_ordinal + p;
        const bool is_padding = ordinal >= geometry_.patches_per_epoch;
        std::fill_n(range.begin() + static_cast<std::ptrdiff_t>(p * patch_bytes), patch_bytes,
                    is_padding ? std::byte{0xff} : PatchByte(lease.shard.epoch, ordinal));
      }
    }
    data::ShardHeader header;
    header.stream = kJob;
    header.shard = lease.shard;
    header.grant = lease.grant;
    header.lease = lease.lease;
    header.arrays = 2;
    if (ring->ReportShardFinished(header).ok()) return true;
    ring.reset();
    return false;
  }

  static constexpr pid_t kNoProcess = 1 << 30;  ///< above every pid

  const StreamGeometry geometry_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::atomic<bool> silent_ = false;
  mutable std::mutex mu_;  ///< guards everything below
  std::condition_variable changed_;
  scheduler::InProcessScheduler scheduler_;
  std::optional<protocol::TaskLease> planning_;
  control::EventLoop* loop_ = nullptr;
  control::Session::Callbacks callbacks_;
  std::map<std::uint64_t, control::Session::Answer> answers_;  ///< by number of the request
  std::uint64_t requests_ = 1;                                 ///< 1: the submission
  std::function<StatusOr<Body>(protocol::TrainerAttached)> change_attached_;
  bool connected_ = true, stopping_ = false;
  protocol::TrainerEndpoint endpoint_;
  std::map<std::uint32_t, Worker> workers_;  ///< by index
  std::uint32_t next_worker_ = 1, frozen_ = 0;
  std::set<ShardId> counted_;
  std::uint64_t counted_twice_ = 0;
  std::deque<Body> heard_;
  Heard counts_;
  std::vector<std::thread> threads_;
  std::thread clock_;
};

}  // namespace patchbay::client::testing
