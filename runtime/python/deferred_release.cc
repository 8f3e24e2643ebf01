#include "runtime/python/deferred_release.h"

#include <utility>

#include <pthread.h>
#include <signal.h>

namespace patchbay::python {

DeferredRelease::DeferredRelease(std::shared_ptr<CudaContext> context,
                                 std::function<void(std::uint32_t)> give_back)
    : context_(std::move(context)), give_back_(std::move(give_back)) {}

DeferredRelease::~DeferredRelease() { Drain(); }

void DeferredRelease::Drain() {
  {
    const std::lock_guard lock(mu_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeferredRelease::After(const std::vector<CudaStream>& streams, std::uint32_t item) {
  Item made{{}, item};
  for (const CudaStream stream : streams) {
    try {
      made.events.push_back(context_->Record(stream));
    } catch (const CudaError&) {  // NOLINT(bugprone-empty-catch): as the header says
    }
  }
  const std::lock_guard lock(mu_);
  items_.push_back(std::move(made));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void DeferredRelease::Run() {
  sigset_t all;  // signals are for the interpreter's threads
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    for (const CudaEvent event : item.events) context_->AwaitAndDestroy(event);
    give_back_(item.number);
    lock.lock();
  }
}

}  // namespace patchbay::python
