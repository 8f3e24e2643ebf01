// The scheduler's core with a journal in memory, in the test's process: real decisions without a
// socket, a disk or a clock of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/core/core.h"

namespace patchbay::scheduler {

using protocol::Body;

/// Not thread-safe. Every call takes the time, which must not go back.
class InProcessScheduler {
 public:
  /// `deliver` gets every message as it is sent; it must not call back. With `sync` each record
  /// is durable at once; without it records wait for Sync.
  InProcessScheduler(const CoreOptions& options, std::function<void(SendAction&&)> deliver,
                     bool sync = true)
      : options_(options), deliver_(std::move(deliver)), sync_(sync) {}

  /// The first start, and every later one: what the journal holds is replayed, peers are gone.
  Status Start(TimeMs now) {
    cache_.clear();
    core_ = std::make_unique<Core>(options_);
    for (const JournalRecord& record : disk_) {
      if (const Status status = core_->Replay(record.sequence, record.bytes); !status.ok()) {
        return status;
      }
    }
    Do(now, [&](Instant at, Actions& actions) { core_->Start(at, actions); });
    return absl::OkStatus();
  }
  void Join(PeerId peer, Role role, const std::string& name, const std::string& team = "") {
    core_->PeerJoined(peer, {role, name, {"/data"}, {"/out"}, team});
  }
  void Leave(PeerId peer, TimeMs now) {
    Do(now, [&](Instant at, Actions& actions) { core_->PeerGone(peer, at, actions); });
  }
  void Tell(PeerId peer, Body body, std::uint64_t request, TimeMs now) {
    Do(now, [&](Instant at, Actions& actions) {
      core_->Receive(peer, {protocol::kProtocolVersion, 99, request, std::move(body)}, at, actions);
    });
  }
  void Revoke(const std::string& key, TimeMs now) {
    Do(now, [&](Instant at, Actions& actions) { core_->KeysRevoked({key}, at, actions); });
  }
  void Tick(TimeMs now) {
    Do(now, [&](Instant at, Actions& actions) { core_->Tick(at, actions); });
  }
  void Sync(TimeMs now) {
    Do(now, [&](Instant at, Actions& actions) {
      core_->JournalDurable(core_->last_sequence(), at, actions);
    });
  }

  /// The wall clock jumps; the monotonic one goes on.
  void StepClock(std::int64_t seconds) { wall_ += seconds; }
  Core& core() { return *core_; }
  std::vector<JournalRecord>& disk() { return disk_; }

 private:
  template <typename Event>
  void Do(TimeMs now, const Event& event) {
    Actions actions;
    event(Instant{now, wall_ + now / 1000}, actions);
    for (JournalRecord& record : actions.records) cache_.push_back(std::move(record));
    for (SendAction& send : actions.sends) deliver_(std::move(send));
    if (!sync_ || cache_.empty()) return;
    for (JournalRecord& record : cache_) disk_.push_back(std::move(record));
    cache_.clear();
    Sync(now);
  }

  const CoreOptions options_;
  const std::function<void(SendAction&&)> deliver_;
  const bool sync_;
  std::int64_t wall_ = 1'700'000'000;  ///< at the monotonic clock's zero
  std::unique_ptr<Core> core_;
  std::vector<JournalRecord> disk_, cache_;
};

}  // namespace patchbay::scheduler
