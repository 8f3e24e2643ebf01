#include "runtime/format/zarr/shared_loop.h"

#include <utility>

namespace patchbay::zarr {

Status SharedLoop::Run(std::size_t items, const Body& body) {
  std::unique_lock lock(mu_);
  if (is_cancelled_) return Cancelled("an earlier step failed");
  body_ = &body;
  items_ = items;
  next_ = 0;
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, [this] { return CanBegin() || IsDone(); });
    if (IsDone()) break;
    TakeNext(lock, kOwner);
  }
  body_ = nullptr;
  allowed_ = SIZE_MAX;
  if (auto thrown = std::exchange(thrown_, nullptr)) std::rethrow_exception(thrown);
  return std::exchange(status_, absl::OkStatus());
}

void SharedLoop::Help() {
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ended_ || CanBegin(); });
    if (is_ended_) return;
    TakeNext(lock, kHelper);
  }
}

void SharedLoop::HelpOnce() {
  std::unique_lock lock(mu_);
  if (CanBegin()) TakeNext(lock, kHelper);
}

void SharedLoop::Allow(std::size_t items) {
  const std::lock_guard lock(mu_);
  allowed_ = items;
  changed_.notify_all();
}

std::size_t SharedLoop::Waiting() {
  const std::lock_guard lock(mu_);
  return CanBegin() ? std::min(items_, allowed_) - next_ : 0;
}

void SharedLoop::Cancel() {
  const std::lock_guard lock(mu_);
  is_cancelled_ = true;
  if (body_ != nullptr && status_.ok()) status_ = Cancelled("an earlier step failed");
  next_ = items_;
  changed_.notify_all();
}

void SharedLoop::End() {
  const std::lock_guard lock(mu_);
  is_ended_ = true;
  changed_.notify_all();
}

/// One item, without the lock. The first that fails is the last that is begun.
void SharedLoop::TakeNext(std::unique_lock<std::mutex>& lock, Lane lane) {
  const Body& body = *body_;
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
  if (!status.ok() || thrown != nullptr) {
    next_ = items_;
    if (status_.ok()) status_ = std::move(status);
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
  }
  if (!CanBegin()) changed_.notify_all();
}

}  // namespace patchbay::zarr
