#include "runtime/os/work_meter.h"

#include <ctime>

#include <pthread.h>

namespace patchbay {
namespace {

thread_local std::uint64_t bytes_read = 0;
thread_local ThreadSpent taken;
thread_local WorkMeter* meter_of_thread = nullptr;

std::int64_t NsOf(clockid_t clock) {
  timespec spent{};
  clock_gettime(clock, &spent);
  return std::int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

ThreadSpent Total() { return {NsOf(CLOCK_THREAD_CPUTIME_ID), bytes_read}; }

/// The clock of the calling thread, as other threads may read it.
clockid_t OwnClock() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(pthread_self(), &clock);
  return clock;
}

ThreadSpent Since(const ThreadSpent& before) {
  const ThreadSpent now = Total();
  return {now.cpu_ns - before.cpu_ns, now.bytes_read - before.bytes_read};
}

}  // namespace

void CountBytesRead(std::size_t bytes) { bytes_read += bytes; }

ThreadSpent TakeSpent() {
  const ThreadSpent spent = Since(taken);
  taken.cpu_ns += spent.cpu_ns;
  taken.bytes_read += spent.bytes_read;
  return spent;
}

WorkMeter::WorkMeter() : clock_(OwnClock()), begun_(Total()) { meter_of_thread = this; }

WorkMeter::~WorkMeter() { meter_of_thread = nullptr; }

ThreadSpent WorkMeter::Read() const {
  const ThreadSpent own = Since(begun_);
  return {own.cpu_ns + others_cpu_ns_, own.bytes_read + others_bytes_read_};
}

std::int64_t WorkMeter::CpuNsSoFar() const { return NsOf(clock_) - begun_.cpu_ns + others_cpu_ns_; }

WorkMeter* WorkMeter::OfThread() { return meter_of_thread; }

WorkMeter::Part::Part(WorkMeter* meter)
    : meter_(meter == meter_of_thread ? nullptr : meter), begun_(Total()) {
  if (meter_ != nullptr) meter_of_thread = meter_;
}

WorkMeter::Part::~Part() {
  if (meter_ == nullptr) return;
  const ThreadSpent spent = Since(begun_);
  meter_->others_cpu_ns_ += spent.cpu_ns;
  meter_->others_bytes_read_ += spent.bytes_read;
  meter_of_thread = nullptr;
}

}  // namespace patchbay
