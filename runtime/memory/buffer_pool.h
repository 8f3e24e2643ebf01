// A bounded set of equal buffers that are lent out and come back: scratch of the pipeline's stages.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::memory {

/// Holds `capacity` buffers made by the caller (HostBuffer, PinnedBuffer, DeviceBlock) and lends
/// them. Thread-safe. Everything lent must be back before it is destroyed.
template <typename Buffer>
class BufferPool {
 public:
  /// A borrowed buffer; goes back by itself.
  class Lent {
   public:
    Lent() = default;
    Lent(Lent&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Lent& operator=(Lent&& other) noexcept {
      if (this != &other) {
        GiveBack();
        pool_ = std::exchange(other.pool_, nullptr);
        index_ = other.index_;
      }
      return *this;
    }
    ~Lent() { GiveBack(); }

    Buffer& operator*() const { return pool_->buffers_[index_]; }
    Buffer* operator->() const { return &pool_->buffers_[index_]; }
    bool valid() const { return pool_ != nullptr; }

   private:
    friend class BufferPool;
    Lent(BufferPool* pool, std::size_t index) : pool_(pool), index_(index) {}
    void GiveBack() {
      if (pool_ != nullptr) std::exchange(pool_, nullptr)->Return(index_);
    }

    BufferPool* pool_ = nullptr;
    std::size_t index_ = 0;
  };

  /// Takes the buffers; their number is the most that can be lent at once.
  explicit BufferPool(std::vector<Buffer> buffers) : buffers_(std::move(buffers)) {
    for (std::size_t i = buffers_.size(); i-- > 0;) free_.push_back(i);
  }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A buffer now, or ResourceExhausted. Never blocks.
  StatusOr<Lent> TryBorrow() {
    const std::lock_guard lock(free_mu_);
    if (free_.empty()) {
      return absl::ResourceExhaustedError("borrow buffer: all of the pool's buffers are lent");
    }
    return Take();
  }

  /// Blocks until a buffer is free.
  Lent Borrow() {
    std::unique_lock lock(free_mu_);
    came_back_.wait(lock, [this] { return !free_.empty(); });
    return Take();
  }

  std::size_t capacity() const { return buffers_.size(); }

 private:
  Lent Take() {
    const std::size_t index = free_.back();
    free_.pop_back();
    return Lent(this, index);
  }
  void Return(std::size_t index) {
    {
      const std::lock_guard lock(free_mu_);
      free_.push_back(index);
    }
    came_back_.notify_one();
  }

  std::vector<Buffer> buffers_;
  std::mutex free_mu_;
  std::condition_variable came_back_;
  std::vector<std::size_t> free_;  // guarded by free_mu_
};

}  // namespace patchbay::memory
