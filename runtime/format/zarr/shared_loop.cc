#include "runtime/format/zarr/shared_loop.h"

#include <utility>

namespace patchbay::zarr {

Status SharedLoop::Run(std::size_t items, const Body& body) {
  std::unique_lock lock(mu_);
  body_ = &body;
  items_ = items;
  next_ = 0;
  changed_.notify_all();
  Work(lock, kOwner);
  changed_.wait(lock, [this] { return busy_ == 0; });
  body_ = nullptr;
  if (auto thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
  return std::exchange(status_, absl::OkStatus());
}

void SharedLoop::Help() {
  std::unique_lock lock(mu_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || (body_ != nullptr && next_ < items_); });
    if (is_ended_) return;
    Work(lock, kHelper);
  }
}

void SharedLoop::End() {
  const std::lock_guard lock(mu_);
  is_ended_ = true;
  changed_.notify_all();
}

void SharedLoop::Work(std::unique_lock<std::mutex>& lock, Lane lane) {
  const Body& body = *body_;
  while (next_ < items_) {
    const std::size_t item = next_++;
    ++busy_;
    lock.unlock();
    Status status;
    std::exception_ptr thrown;
    try {
      status = body(item, lane);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    --busy_;
    if (status.ok() && thrown == nullptr) continue;
    next_ = items_;
    if (status_.ok()) status_ = std::move(status);
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
  }
  changed_.notify_all();
}

}  // namespace patchbay::zarr
