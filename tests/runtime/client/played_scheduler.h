// A scheduler and its workers, played in the test's own process: enough of them to stream. The
// control session is replaced; rings, sockets and memory are the real ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/client/stream.h"
#include "runtime/format/json/json.h"
#include "runtime/model/stream/planned_stream.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::client::testing {

using protocol::Body;

inline constexpr JobId kJob = 12;

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

/// The byte every byte of a patch has.
inline std::byte PatchByte(std::uint32_t epoch, std::uint64_t ordinal) {
  return static_cast<std::byte>(17 * epoch + 7 * ordinal + 1);
}

/// Plays the scheduler of one rank. Thread-safe.
class PlayedScheduler {
 public:
  explicit PlayedScheduler(const StreamGeometry& geometry = TestGeometry(), std::uint32_t rank = 0)
      : geometry_(geometry), rank_(rank) {
    attached_.geometry = geometry;
    attached_.plan_digest = Sha256Of(TestPlan());
    attached_.scheduler_incarnation = 1;
    result_.state = protocol::TaskState::kDone;
    result_.result = PlanResult(geometry);
  }
  ~PlayedScheduler() { StopWorkers(); }

  Stream::OpenSession Opener() {
    return [this](control::EventLoop& loop, control::Session::Callbacks callbacks)
               -> StatusOr<std::unique_ptr<control::Session>> {
      const std::lock_guard lock(mu_);
      loop_ = &loop;
      callbacks_ = std::move(callbacks);
      loop.Post(callbacks_.on_connected);
      return std::unique_ptr<control::Session>(new PlayedSession(*this));
    };
  }

  // The scheduler's answers; change before attaching.
  protocol::TrainerAttached attached_;
  protocol::ResultFetched result_;
  Status attach_error_;

  void StartWorkers(int count) {
    for (int i = 0; i < count; ++i) workers_.emplace_back([this] { Work(); });
  }
  void StopWorkers() {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }
  /// Takes a lease without working on it: a worker that froze.
  protocol::ShardLease StealLease() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return !leases_.empty(); });
    const protocol::ShardLease lease = leases_.front();
    leases_.pop_front();
    return lease;
  }
  void LeaseAgain(protocol::ShardLease lease, const protocol::SlotRow& row) {
    const std::lock_guard lock(mu_);
    lease.lease.counter = ++lease_counter_;
    lease.grant.slot = row.slot;
    lease.grant.slot_generation = row.generation;
    leases_.push_back(lease);
    changed_.notify_all();
  }
  void TellTrainer(Body fact) {
    const std::lock_guard lock(mu_);
    loop_->Post([this, fact = std::move(fact)] { callbacks_.on_fact(fact); });
  }
  /// Connection lost, everything but the plan forgotten, connection back: a scheduler's restart.
  /// What its workers were making is waited for, as a real one waits two lease times.
  void Restart() {
    std::unique_lock lock(mu_);
    restarting_ = true;
    leases_.clear();
    changed_.wait(lock, [this] { return working_ == 0 && reported_ == counted_; });
    restarting_ = false;
    ++attached_.scheduler_incarnation;
    connected_ = false;
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
  /// Answers every AttachTrainer with this from now on.
  void RefuseAttach(const Status& why) {
    const std::lock_guard lock(mu_);
    attach_error_ = why;
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
  class PlayedSession final : public control::Session {
   public:
    explicit PlayedSession(PlayedScheduler& scheduler) : scheduler_(scheduler) {}
    void Request(Body body, TimeMs, Answer answer) override {
      scheduler_.loop_->Post([this, body = std::move(body), answer = std::move(answer)] {
        if (!scheduler_.silent_) answer(scheduler_.Hear(body));
      });
    }
    Status Tell(const Body& body) override {
      if (!connected()) return absl::UnavailableError("not connected");
      return scheduler_.Hear(body).status();
    }
    bool connected() const override {
      const std::lock_guard lock(scheduler_.mu_);
      return scheduler_.connected_;
    }
    std::uint64_t incarnation() const override { return 1; }
    Status state() const override { return absl::UnavailableError("played"); }

   private:
    PlayedScheduler& scheduler_;
  };

  StatusOr<Body> Hear(const Body& body) {
    const std::lock_guard lock(mu_);
    if (!std::holds_alternative<protocol::Heartbeat>(body)) heard_.push_back(body);
    if (std::holds_alternative<protocol::Heartbeat>(body)) ++counts_.heartbeats;
    if (std::holds_alternative<protocol::AttachTrainer>(body)) ++counts_.attaches;
    changed_.notify_all();
    if (std::holds_alternative<protocol::FetchResult>(body)) return Body(result_);
    if (std::holds_alternative<protocol::DetachTrainer>(body))
      return Body(protocol::TrainerDetached{});
    if (const auto* attach = std::get_if<protocol::AttachTrainer>(&body)) {
      if (!attach_error_.ok()) return attach_error_;
      OnAttach(*attach);
      return Body(attached_);
    }
    if (const auto* counted = std::get_if<protocol::ShardsCounted>(&body)) {
      for (const auto& item : counted->items) {
        if (!counted_.insert(item.shard).second) ++counted_twice_;
      }
    }
    if (const auto* announced = std::get_if<protocol::AnnounceSlots>(&body)) {
      for (const protocol::SlotRow& row : announced->slots) Grant(row);
    }
    return Body(protocol::HeartbeatSeen{attached_.scheduler_incarnation});
  }

  /// The trainer's table is the truth: what it holds is kept, what misses is leased again.
  void OnAttach(const protocol::AttachTrainer& attach) {
    endpoint_ = attach.endpoint;
    next_ = {attach.first_epoch, attach.first_batch};
    held_.clear();
    granted_.clear();
    for (const protocol::SlotRow& row : attach.slots) {
      if (row.state == protocol::SlotState::kFull) held_.insert({row.epoch, row.batch});
      if (row.state == protocol::SlotState::kFilling) {
        held_.insert({row.epoch, row.batch});
        LeaseShards(row, {row.epoch, row.batch});
      }
    }
    for (const protocol::SlotRow& row : attach.slots) {
      if (row.state == protocol::SlotState::kFree) Grant(row);
    }
  }

  void Grant(const protocol::SlotRow& row) {
    if (restarting_) return;  // the trainer's table will say it again
    std::uint64_t& granted = granted_[row.slot];
    if (row.generation <= granted) return;  // repeated news
    granted = row.generation;
    while (held_.contains(next_) || ShardsInRank(geometry_, next_.batch, rank_) == 0) {
      next_ = NextPosition(geometry_, next_);
    }
    LeaseShards(row, next_);
    next_ = NextPosition(geometry_, next_);
  }

  void LeaseShards(const protocol::SlotRow& row, Position at) {
    for (std::uint32_t s = 0; s < ShardsInRank(geometry_, at.batch, rank_); ++s) {
      if (std::count(row.counted.begin(), row.counted.end(), s) > 0) continue;
      protocol::ShardLease lease;
      lease.lease = {attached_.scheduler_incarnation, ++lease_counter_};
      lease.stream = kJob;
      lease.shard = ShardId{at.epoch, at.batch, rank_, s};
      const PatchRun run = ShardRun(geometry_, at.batch, rank_, s);
      lease.first_ordinal = run.first_ordinal;
      lease.grant = {row.slot, row.generation, run.place, run.count};
      leases_.push_back(lease);
    }
    changed_.notify_all();
  }

  void Work() {
    std::unique_ptr<data::MappedRing> ring;
    for (;;) {
      protocol::ShardLease lease;
      data::MappedRing::Options options;
      {
        std::unique_lock lock(mu_);
        changed_.wait(lock, [this] { return stopping_ || !leases_.empty(); });
        if (stopping_) return;
        lease = leases_.front();
        leases_.pop_front();
        ++working_;
        options.socket_name = endpoint_.socket_name;
        options.secret = *data::StreamSecretFromText(endpoint_.stream_secret);
        options.stream = kJob;
        options.incarnation = lease.lease.incarnation;
        options.layout = TestLayout();
        options.capacity = Capacity(geometry_);
      }
      const bool reported = Make(lease, options, ring);
      const std::lock_guard lock(mu_);
      if (reported) reported_.insert(lease.shard);
      --working_;
      changed_.notify_all();
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
        std::fill_n(range.begin() + static_cast<std::ptrdiff_t>(p * patch_bytes), patch_bytes,
                    PatchByte(lease.shard.epoch, lease.first_ordinal + p));
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

  const StreamGeometry geometry_;
  const std::uint32_t rank_;
  std::atomic<bool> silent_ = false;
  mutable std::mutex mu_;  ///< guards everything below
  std::condition_variable changed_;
  control::EventLoop* loop_ = nullptr;
  control::Session::Callbacks callbacks_;
  bool connected_ = true, restarting_ = false, stopping_ = false;
  protocol::TrainerEndpoint endpoint_;
  Position next_;
  std::set<Position> held_;
  std::map<std::uint32_t, std::uint64_t> granted_;  ///< generation of each slot's last grant
  std::deque<protocol::ShardLease> leases_;
  std::uint64_t lease_counter_ = 0;
  int working_ = 0;
  std::set<ShardId> reported_, counted_;
  std::uint64_t counted_twice_ = 0;
  std::deque<Body> heard_;
  Heard counts_;
  std::vector<std::thread> workers_;
};

}  // namespace patchbay::client::testing
