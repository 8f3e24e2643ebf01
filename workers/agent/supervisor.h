// The root of a node's processes: starts the scheduler and the agent, restarts programs that die,
// and stops all of them at the end. Single-threaded and without libraries, so that it hardly ever
// fails.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "workers/process/child_process.h"

namespace patchbay::workers {

/// One program the supervisor keeps running.
struct SupervisedProgram {
  std::string name;                    ///< "scheduler", "agent": for messages
  std::vector<std::string> arguments;  ///< program path first; "--ready-fd N" is appended
};

struct SupervisorOptions {
  std::vector<SupervisedProgram> programs;  ///< started in this order, stopped in the reverse one
  /// Lines for the parent of the supervisor: "<program> <line the program wrote>" for each program,
  /// then "ready" or "failed <program>: <why>", with the program's own text where it wrote "failed
  /// <why>" before it gave up. -1: no parent listens.
  int ready_fd = -1;
  /// Socket of the service manager (NOTIFY_SOCKET), "" = none. It hears that all programs are
  /// ready, once a second that the loop turns, and while they stop that this may take longer.
  std::string notify;
  long stop_ms = 30'000;  ///< time for all programs together to stop before SIGKILL
};

/// Sent to a program that is stopped once those started after it have ended.
inline constexpr int kStopComes = SIGUSR1;

/// Keeps the programs running until SIGTERM or SIGINT (a second one kills at once; one that the
/// parent passes on is not the second), until one of them ends with exit code 0 (stopped or drained
/// on purpose) or by one of these signals, or until one cannot start. A program that ends with
/// kExitCannotStart before it was ever ready, or with kExitGivenUp at any time, has written the
/// reason to stderr and is not started again. When this returns no child is left. Returns the exit
/// code, kExitStopped after a signal.
int RunSupervisor(const SupervisorOptions& options);

/// From the command line: --ready-fd N, --stop-ms N, then for each program
/// "--child NAME PROGRAM ARGUMENT...". False with `error` set when it is not of that form.
bool ParseSupervisorArguments(const std::vector<std::string>& arguments, SupervisorOptions& options,
                              std::string& error);

}  // namespace patchbay::workers
