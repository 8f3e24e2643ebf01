// How a worker says that it was its planning thread that crashed.
#pragma once

namespace patchbay::workers {

/// From now on a crash of a thread that plans (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, sent to
/// that thread or raised by it) ends the process with exit code protocol::kPlanningCrashed and a
/// backtrace on stderr. Other crashes and signals end it as they would have, by whoever handled
/// them before. Call it in main, before there are threads.
void NamePlanningCrashes();

/// As long as it lives, the calling thread plans. One a thread.
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
