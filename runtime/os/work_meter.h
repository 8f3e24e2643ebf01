// Processor time and bytes read of a piece of work, as the threads that do it spend them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <utility>

namespace patchbay {

/// Resources that threads spent.
struct ThreadSpent {
  std::int64_t cpu_ns = 0;
  std::uint64_t bytes_read = 0;  ///< through ReadAt; not bytes that libraries read themselves
};

/// Adds to the bytes that the calling thread has read.
void CountBytesRead(std::size_t bytes);

/// Resources that the calling thread spent since its last call, or its start. One system call.
ThreadSpent TakeSpent();

/// Sums up what the thread that makes it spends from then on, and other threads for it. One
/// at a time on a thread; TakeSpent goes on beside it.
class WorkMeter {
 public:
  WorkMeter();
  ~WorkMeter();
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

  /// Call on its thread, once the others have ended.
  ThreadSpent Read() const;
  /// Processor time so far of its thread, and of the others that have ended. Thread-safe while it
  /// lives.
  std::int64_t CpuNsSoFar() const;
  /// The meter that the calling thread works for; null without one.
  static WorkMeter* OfThread();

  /// As long as it lives, its thread works for the meter, which may be null. Changes nothing on a
  /// thread that does so already.
  class Part {
   public:
    explicit Part(WorkMeter* meter);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    WorkMeter* const meter_;  ///< null: nothing to count
    const ThreadSpent begun_;
  };

 private:
  const clockid_t clock_;  ///< its thread's
  const ThreadSpent begun_;
  std::atomic<std::int64_t> others_cpu_ns_{0};
  std::atomic<std::uint64_t> others_bytes_read_{0};
};

/// `work` for another thread, counted by the meter of the calling thread, which must outlive it.
template <typename Work>
auto Metered(Work work) {
  return [meter = WorkMeter::OfThread(), work = std::move(work)](auto&&... arguments) mutable {
    const WorkMeter::Part part(meter);
    return work(std::forward<decltype(arguments)>(arguments)...);
  };
}

}  // namespace patchbay
