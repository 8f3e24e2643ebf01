#include "runtime/python/ring_waiter.h"

#include <ctime>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace patchbay::python {
namespace {

constexpr std::int64_t kLookEveryMs = 50;             ///< for signals and the client process
constexpr std::int64_t kExhaustedNs = 2'000'000'000;  ///< for another thread to release a slot
constexpr int kUnavailable = 14;                      ///< absl::StatusCode
constexpr int kExhaustedRing = -1, kClosedStream = -2, kForked = -3, kTimeout = -4;

std::int64_t NowNs() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void Raise(const nb::object& error) {
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

/// Raises the exception that patchbay.errors makes from the arguments.
[[noreturn]] void Raise(int code, bool config, const std::string& text) {
  Raise(nb::module_::import_("patchbay.errors").attr("of")(code, config, text));
}

}  // namespace

RingWaiter::RingWaiter(std::shared_ptr<RingMapping> ring) : ring_(std::move(ring)) {
  for (const ArrayDescription& array : ring_->description().arrays) {
    std::uint64_t bytes = array.type->bits / 8;
    for (const std::int64_t axis : array.shape) bytes *= static_cast<std::uint64_t>(axis);
    patch_bytes_ += bytes;
  }
}

void RingWaiter::CheckUsable() const {
  if (ring_->IsFork()) {
    Raise(kForked, false,
          "next batch: the stream belongs to the process that attached, not to its fork: attach "
          "after the fork, or use DataLoader(num_workers=0)");
  }
  if (closed_) Raise(kClosedStream, false, "next batch: the stream is closed");
}

/// Called when a wait brought nothing.
void RingWaiter::CheckLife() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  CheckUsable();
  if (ring_->HasNext() || !ring_->ClientGone()) return;
  Raise(kUnavailable, false,
        "next batch: the client process of this stream has ended (killed, or out of memory?): "
        "attach again with the last state");
}

void RingWaiter::CheckExhausted(std::int64_t now_ns) {
  if (!ring_->EverySlotHeld()) {
    exhausted_since_ns_ = 0;
    return;
  }
  if (exhausted_since_ns_ == 0) exhausted_since_ns_ = now_ns;
  if (now_ns - exhausted_since_ns_ < kExhaustedNs) return;
  exhausted_since_ns_ = 0;
  Raise(kExhaustedRing, false,
        "next batch: every slot of the ring is held: " + ring_->Holders() +
            ": let go of a batch or its tensors, clone what is kept, or raise batch.prefetch; a "
            "DataLoader with a batch_size holds that many: batch_size=None");
}

std::shared_ptr<Hold> RingWaiter::Next(std::int64_t timeout_ms) {
  CheckUsable();
  const std::int64_t begun_ns = NowNs();
  if (times_.first_call_ns == 0) times_.first_call_ns = begun_ns;
  exhausted_since_ns_ = 0;
  Handover& shared = ring_->shared();
  for (;;) {
    const std::uint32_t seen = shared.ready.load(std::memory_order_acquire);
    if (ring_->HasNext()) return Count(ring_->Take(), begun_ns);
    if (shared.failed.load(std::memory_order_acquire) != 0) {
      Raise(nb::module_::import_("patchbay.errors").attr("of_json")(shared.error));
    }
    const std::int64_t now_ns = NowNs();
    CheckExhausted(now_ns);
    if (timeout_ms >= 0 && now_ns - begun_ns > timeout_ms * 1'000'000) {
      Raise(kTimeout, false, "next batch: not there after " + std::to_string(timeout_ms) + " ms");
    }
    {
      const nb::gil_scoped_release release;
      WaitOnWord(shared.ready, seen, kLookEveryMs);
    }
    CheckLife();
  }
}

std::shared_ptr<Hold> RingWaiter::Count(std::shared_ptr<Hold> hold, std::int64_t begun_ns) {
  const std::int64_t now_ns = NowNs();
  times_.wait_ns += now_ns - begun_ns;
  if (times_.batches > 0) {
    times_.later_wait_ns += now_ns - begun_ns;
    times_.later_waits.Add(now_ns - begun_ns);
  }
  if (times_.batches == 0) times_.first_batch_ns = now_ns;
  times_.last_ns = now_ns;
  times_.batches += 1;
  times_.patches += hold->entry().count;
  times_.bytes += hold->entry().count * patch_bytes_;
  return hold;
}

void RingWaiter::Close() {
  closed_ = true;
  if (!ring_->IsFork()) RaiseWord(ring_->shared().ready);
}

nb::dict RingWaiter::Stats() const {
  constexpr double kSecond = 1e9, kMicrosecondsASecond = 1e6;
  const HandoverCounters& counters = ring_->shared().counters;
  nb::dict stats;
  stats["batches"] = times_.batches;
  stats["patches"] = times_.patches;
  stats["bytes"] = times_.bytes;
  const double wall = static_cast<double>(times_.last_ns - times_.first_call_ns) / kSecond;
  const double later = static_cast<double>(times_.last_ns - times_.first_batch_ns) / kSecond;
  stats["wall_s"] = wall;
  stats["wait_s"] = static_cast<double>(times_.wait_ns) / kSecond;
  stats["stall_fraction"] =
      later > 0 ? static_cast<double>(times_.later_wait_ns) / kSecond / later : 0.0;
  stats["wait_p50_s"] = static_cast<double>(times_.later_waits.Percentile(50)) / kSecond;
  stats["wait_p99_s"] = static_cast<double>(times_.later_waits.Percentile(99)) / kSecond;
  stats["first_batch_s"] =
      times_.batches == 0
          ? 0.0
          : static_cast<double>(times_.first_batch_ns - times_.first_call_ns) / kSecond;
  stats["shards_refused"] = counters.shards_refused.load();
  stats["shards_corrupt"] = counters.shards_corrupt.load();
  stats["batches_moved"] = counters.batches_moved.load();
  stats["remote_bytes"] = counters.remote_bytes.load();
  nb::dict stages;
  stages["storage"] = static_cast<double>(counters.storage_us.load()) / kMicrosecondsASecond;
  stages["decode"] = static_cast<double>(counters.decode_us.load()) / kMicrosecondsASecond;
  stages["transform"] = static_cast<double>(counters.transform_us.load()) / kMicrosecondsASecond;
  stages["transfer"] = static_cast<double>(counters.transfer_us.load()) / kMicrosecondsASecond;
  stats["stages_s"] = stages;
  stats["stage_patches"] = counters.stage_patches.load();
  return stats;
}

}  // namespace patchbay::python
