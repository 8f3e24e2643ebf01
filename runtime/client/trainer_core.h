// State shared by a stream and the batches that its user holds: the ring, and messages that wait
// for the scheduler. It lives until the last of them is gone, so a held batch stays readable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/ring_server.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::client {

protocol::SlotRow ToRow(const data::SlotReport& report);

/// Collects the events of the delivery threads for the control thread. Thread-safe.
class TrainerCore final : public data::RingEvents {
 public:
  explicit TrainerCore(std::unique_ptr<data::Ring> ring);
  data::Ring& ring() { return *ring_; }

  /// From now on `flush` is posted to `loop` whenever there is something to tell; null stops that.
  void SetLoop(control::EventLoop* loop, std::function<void()> flush);

  struct Outbox {
    std::vector<protocol::ShardsCounted::Item> counted;
    std::vector<protocol::SlotRow> freed;
    std::vector<data::FenceOutcome> fenced;
    bool waiting_for_fences = false;  ///< look again soon
  };
  /// Everything gathered so far, and the slots whose fences have passed are released first.
  Outbox TakeOutbox();
  /// Puts back messages that could not be sent, in front of newer ones.
  void Return(Outbox outbox);

  void OnCounted(const ShardId& shard, const LeaseNumber& lease) override;
  void OnSlotFree(const data::SlotReport& slot) override;
  void OnFenced(const data::FenceOutcome& outcome);

  /// Returns true once the consumer's device is done with the slot, according to an event on its
  /// stream.
  using DeviceFence = std::function<bool()>;
  void ReleaseSlot(std::uint32_t slot, std::uint64_t generation, std::vector<DeviceFence> fences);
  /// Whether slots wait for their fences.
  bool HasUnreleasedSlots();

 private:
  struct UnreleasedSlot {
    std::uint32_t slot = 0;
    std::uint64_t generation = 0;
    std::vector<DeviceFence> fences;
  };
  void PostFlush();  ///< with mu_ held
  void ReleasePassed();

  const std::unique_ptr<data::Ring> ring_;
  std::mutex mu_;
  control::EventLoop* loop_ = nullptr;  ///< guarded by mu_, as are all below
  std::function<void()> flush_;
  bool flush_posted_ = false;
  Outbox outbox_;
  std::vector<UnreleasedSlot> unreleased_;
};

/// One use of a slot. The slot is given back when the last owner releases it.
class SlotHold {
 public:
  SlotHold(std::shared_ptr<TrainerCore> core, std::uint32_t slot, std::uint64_t generation)
      : core_(std::move(core)), slot_(slot), generation_(generation) {}
  ~SlotHold();
  SlotHold(const SlotHold&) = delete;
  SlotHold& operator=(const SlotHold&) = delete;

  void Name(std::string holder) { core_->ring().NameHolder(slot_, std::move(holder)); }
  void AddFence(TrainerCore::DeviceFence fence) {
    const std::lock_guard lock(fences_mu_);
    fences_.push_back(std::move(fence));
  }

 private:
  std::shared_ptr<TrainerCore> core_;
  const pid_t owner_ = getpid();
  const std::uint32_t slot_;
  const std::uint64_t generation_;
  std::mutex fences_mu_;
  std::vector<TrainerCore::DeviceFence> fences_;  ///< guarded by fences_mu_
};

}  // namespace patchbay::client
