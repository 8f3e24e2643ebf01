// Releases that wait for events of a device: a thread that waits for them in order. No Python.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/python/cuda_driver.h"

namespace patchbay::python {

/// Thread-safe. The thread starts with the first item.
class DeferredRelease {
 public:
  /// `give_back` is called on the thread, with the number of each item.
  DeferredRelease(std::shared_ptr<CudaContext> context,
                  std::function<void(std::uint32_t)> give_back);
  /// As Drain.
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
  std::mutex mu_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace patchbay::python
