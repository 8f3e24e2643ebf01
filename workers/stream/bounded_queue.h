// The queue between two stages: the faster one waits.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace patchbay::workers {

/// Thread-safe, first in, first out, at most `capacity` items.
template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits while the queue is full. False, with the item dropped, once it is closed.
  bool Push(Item item) {
    std::unique_lock lock(mu_);
    can_push_.wait(lock, [this] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    can_pop_.notify_one();
    return true;
  }

  /// False, with the item left to the caller, when the queue is full or closed.
  bool TryPush(Item& item) {
    const std::lock_guard lock(mu_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    can_pop_.notify_one();
    return true;
  }

  /// Waits for an item; nullopt once the queue is closed and empty.
  std::optional<Item> Pop() {
    std::unique_lock lock(mu_);
    can_pop_.wait(lock, [this] { return closed_ || !items_.empty(); });
    return Take();
  }

  /// An item, or nullopt when there is none now.
  std::optional<Item> TryPop() {
    const std::lock_guard lock(mu_);
    return Take();
  }

  /// Closes the queue for new items; items inside can still be taken.
  void Close() {
    const std::lock_guard lock(mu_);
    closed_ = true;
    can_push_.notify_all();
    can_pop_.notify_all();
  }

  std::size_t size() const {
    const std::lock_guard lock(mu_);
    return items_.size();
  }

 private:
  std::optional<Item> Take() {
    if (items_.empty()) return std::nullopt;
    std::optional<Item> item(std::move(items_.front()));
    items_.pop_front();
    can_push_.notify_one();
    return item;
  }

  const std::size_t capacity_;
  mutable std::mutex mu_;
  std::condition_variable can_push_, can_pop_;
  std::deque<Item> items_;  // guarded by mu_
  bool closed_ = false;     // guarded by mu_
};

}  // namespace patchbay::workers
