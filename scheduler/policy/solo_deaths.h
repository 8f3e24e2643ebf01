// How often a worker died of a task or shard that it ran alone, and when that is too often.
#pragma once

#include <csignal>
#include <cstdint>

#include <sys/wait.h>

#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

/// The meaning of a worker's end for the tasks it ran.
enum class WorkerEnd : std::uint8_t {
  kUnrelated,  ///< nothing: its agent or node ended, or was silent
  kKilled,   ///< little: SIGKILL, or nobody saw how. The kernel that needs memory sends it, but so
             ///< does the agent to a frozen process, and an administrator
  kCrashed,  ///< much: any other signal or exit code, or stuck in what it ran
};

/// The lanes that an end makes suspect.
enum class SuspectLane : std::uint8_t { kAny, kPlanning, kAllButPlanning };

/// `wait_status`: from waitpid.
inline WorkerEnd EndOf(std::int32_t wait_status) {
  return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL ? WorkerEnd::kKilled
                                                                      : WorkerEnd::kCrashed;
}

inline SuspectLane SuspectsOf(std::int32_t wait_status) {
  const bool planning =
      WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == protocol::kPlanningCrashed;
  return planning ? SuspectLane::kPlanning : SuspectLane::kAny;
}

/// Ends of workers that ran nothing else.
struct SoloDeaths {
  std::uint8_t crashed = 0, killed = 0;

  void Add(WorkerEnd end) {
    if (end == WorkerEnd::kCrashed) ++crashed;
    if (end == WorkerEnd::kKilled) ++killed;
  }
  std::uint32_t total() const { return crashed + std::uint32_t{killed}; }
  /// Whether the task is not to run again: kMaxSoloDeaths crashes, or kMaxSoloEnds ends of any
  /// kind.
  bool TooMany() const { return crashed >= kMaxSoloDeaths || total() >= kMaxSoloEnds; }
};

}  // namespace patchbay::scheduler
