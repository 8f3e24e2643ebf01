#include "workers/process/planning_crash.h"

#include <csignal>
#include <cstddef>

#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::workers {
namespace {

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kHandlerStackBytes = 64u << 10;
constexpr int kFramesSaid = 64;
constexpr char kSaid[] = "the thread that plans crashed\n";

thread_local bool t_plans = false;

/// A signal to the whole process may interrupt any of its threads, so it is no evidence against
/// that thread.
bool IsOfThisThread(const siginfo_t& about) {
  return about.si_code > 0 || about.si_code == SI_TKILL;
}

/// The actions of before, by signal: UCX takes some when it is loaded.
struct sigaction g_former[NSIG];

[[noreturn]] void SayAndEnd() {
  void* frames[kFramesSaid];
  [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  backtrace_symbols_fd(frames, backtrace(frames, kFramesSaid), STDERR_FILENO);
  _exit(protocol::kPlanningCrashed);
}

extern "C" void OnCrash(int number, siginfo_t* about, void* where) {
  if (t_plans && IsOfThisThread(*about)) SayAndEnd();
  const struct sigaction& former = g_former[number];
  if ((former.sa_flags & SA_SIGINFO) != 0) return former.sa_sigaction(number, about, where);
  std::signal(number, former.sa_handler);
  std::raise(number);  // delivered when this returns
}

}  // namespace

void NamePlanningCrashes() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call loads a library
  struct sigaction action {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int number : kCrashes) sigaction(number, &action, &g_former[number]);
}

PlanningThread::PlanningThread()
    : stack_(static_cast<char*>(mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
  t_plans = true;
  pthread_setname_np(pthread_self(), "planning");
  if (stack_ == MAP_FAILED) return;  // its stack must do
  stack_t stack{};
  stack.ss_sp = stack_;
  stack.ss_size = kHandlerStackBytes;
  sigaltstack(&stack, nullptr);
}

PlanningThread::~PlanningThread() {
  t_plans = false;
  if (stack_ == MAP_FAILED) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(stack_, kHandlerStackBytes);
}

}  // namespace patchbay::workers
