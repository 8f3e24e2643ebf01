// A ring that a client process handed over, in the trainer's process: the mapped memory, the words
// both wait on (runtime/model/stream/handover.h), and who holds which batch. No Python, C library
// only.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "runtime/model/stream/handover.h"
#include "runtime/python/cuda_driver.h"

namespace patchbay::python {

/// Thread-safe. The thread starts with the first item.
class DeferredRelease {
 public:
  /// `give_back` is called on the thread, with the number of each item.
  DeferredRelease(std::shared_ptr<CudaContext> context,
                  std::function<void(std::uint32_t)> give_back);
  /// Drains.
  ~DeferredRelease();
  DeferredRelease(const DeferredRelease&) = delete;
  DeferredRelease& operator=(const DeferredRelease&) = delete;

  /// Gives `item` back once the work that is in each of `streams` now is done. A stream on which no
  /// event can be recorded belongs to a device that is lost, and is not waited for. Does not block.
  void After(const std::vector<CudaStream>& streams, std::uint32_t item);
  /// Waits for every event, and takes no more.
  void Drain();
  const CudaContext& context() const { return *context_; }

 private:
  struct Item {
    std::vector<CudaEvent> events;
    std::uint32_t number;
  };
  void Run();

  const std::shared_ptr<CudaContext> context_;
  const std::function<void(std::uint32_t)> give_back_;
  std::mutex mu_;  ///< guards the members below
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool ending_ = false;
  std::thread thread_;
};

inline constexpr std::size_t kMostArrays = 16;

/// An element type as DLPack and the buffer protocol name it.
struct ElementType {
  const char* name;
  std::uint8_t dlpack_code, bits;
  const char* format;  ///< format of the struct module; null where it has none
};

/// Null for a name that is none.
const ElementType* FindElementType(const std::string& name);

/// One array of every batch.
struct ArrayDescription {
  std::string name;
  const ElementType* type = nullptr;
  std::vector<std::int64_t> shape;  ///< shape of one patch
  std::uint64_t offset = 0;         ///< from the slot's begin, where the array lies
  bool on_device = false;
};

/// Where the slots of a device stream lie: memory of the client process's.
struct DeviceDescription {
  std::shared_ptr<CudaContext> context;
  std::array<std::byte, 64> ipc_handle{};
  std::uint64_t bytes = 0, slot_bytes = 0;
};

struct RingDescription {
  int control_fd = -1, ring_fd = -1;  ///< closed by RingMapping::Open
  int link_fd = -1;                   ///< to the client process; closed with the mapping
  std::uint64_t ring_bytes = 0, slot_bytes = 0;
  std::uint32_t slots = 0;  ///< batches that may be held at once
  std::vector<ArrayDescription> arrays;
  std::optional<DeviceDescription> device;  ///< device of a device stream
  /// Streams on which the consumer's work is queued now, on that device; called without Python's
  /// lock or with it, from any thread.
  std::function<std::vector<CudaStream>(int device)> consumer_streams;
};

class Hold;

/// Thread-safe but for Take, which is called under a lock. Lives as long as anything made from it.
class RingMapping : public std::enable_shared_from_this<RingMapping> {
 public:
  /// Throws std::runtime_error when the descriptors do not match the description, CudaError when
  /// the device's memory cannot be mapped.
  static std::shared_ptr<RingMapping> Open(const RingDescription& description);
  ~RingMapping();
  RingMapping(const RingMapping&) = delete;
  RingMapping& operator=(const RingMapping&) = delete;

  const RingDescription& description() const { return description_; }
  Handover& shared() { return *shared_; }
  bool IsFork() const;
  bool HasNext() const;
  bool ClientGone() const;
  bool EverySlotHeld() const;
  /// Page-locks a host ring, and lets slots go back only behind the work that is queued on the
  /// consumer's streams of that device. Once; under a lock. Throws CudaError.
  void UseDevice(const std::shared_ptr<CudaContext>& context);
  bool UsesDevice() const { return deferred_.load() != nullptr; }
  /// "epoch 0 batch 3 (image, 2 tensors)" of every batch that is held.
  std::string Holders() const;
  /// The next published batch. Throws std::runtime_error when its entry contradicts the
  /// description.
  std::shared_ptr<Hold> Take();

 private:
  friend class Hold;
  struct Use {
    std::atomic<std::uint32_t> held{0};
    std::array<std::atomic<std::uint32_t>, kMostArrays> arrays{};
    std::atomic<std::uint32_t> in_batch{0};
  };
  RingMapping() = default;
  std::string HolderOf(std::uint32_t entry) const;
  void MapDevice();
  void Defer(std::shared_ptr<CudaContext> context);
  /// Gives back the slot of a batch that is no longer used. From any thread.
  void GiveBack(std::uint32_t entry);

  RingDescription description_;
  pid_t owner_ = 0;
  Handover* shared_ = nullptr;
  std::byte* ring_ = nullptr;
  std::byte* d_ring_ = nullptr;  ///< ring of a device stream
  bool pages_locked_ = false;
  /// This owns it; null unless a device is used.
  std::atomic<DeferredRelease*> deferred_{nullptr};
  std::atomic<std::uint32_t> slots_held_{0};
  std::array<Use, kHandoverEntries> uses_;
};

/// Holds one batch's slot. The destructor gives it back to the ring, from any thread; if a device
/// is used, after the work queued until then has ended. In a forked child nothing is given back.
class Hold {
 public:
  Hold(std::shared_ptr<RingMapping> ring, std::uint32_t entry);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const HandoverEntry& entry() const { return ring_->shared_->entries[entry_]; }
  const RingDescription& description() const { return ring_->description_; }
  /// Notes a stream passed by an array's consumer; it must live as long as the consumer's capsule.
  /// Call with the GIL held.
  void NoteStream(CudaStream stream) const;
  /// Address of that array of the batch, in host or device memory; null for a batch without
  /// patches.
  std::byte* Address(std::size_t array) const;
  /// Counts something made from that array, for the text of an exhausted ring.
  void CountArray(std::size_t array, int change) const;
  void InBatch(bool held) const { ring_->uses_[entry_].in_batch = held ? 1 : 0; }

 private:
  const std::shared_ptr<RingMapping> ring_;
  const std::uint32_t entry_;
  mutable std::vector<CudaStream> streams_;
};

}  // namespace patchbay::python
