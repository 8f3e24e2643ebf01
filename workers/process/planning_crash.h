// Reports to the scheduler that a crash was the planning thread's, by the worker's exit code.
#pragma once

namespace patchbay::workers {

/// From now on a crash of a thread that plans (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, sent to
/// that thread or raised by it) ends the process with exit code protocol::kPlanningCrashed and a
/// backtrace on stderr. Other crashes and signals end it as before, through the handlers that were
/// installed before. Call it in main, before there are threads.
void NamePlanningCrashes();

/// Marks the calling thread as planning for its lifetime. At most one per thread.
class PlanningThread {
 public:
  PlanningThread();
  ~PlanningThread();
  PlanningThread(const PlanningThread&) = delete;
  PlanningThread& operator=(const PlanningThread&) = delete;

 private:
  char* const stack_;  ///< for signal handlers: its own may have run out
};

}  // namespace patchbay::workers
