// One seed, whatever happens: a scheduler core that ends itself, throws or does not come back is a
// violation like any other.
#include <csetjmp>
#include <csignal>
#include <exception>
#include <memory>

#include <sys/time.h>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {
namespace {

constexpr time_t kMostCpuSeconds = 60;
constexpr int kWatched[] = {SIGABRT, SIGSEGV, SIGFPE, SIGVTALRM};

sigjmp_buf return_point;

extern "C" void JumpBack(int number) { siglongjmp(return_point, number); }

void Watch(bool on) {
  struct sigaction action {};
  action.sa_handler = on ? JumpBack : SIG_DFL;
  action.sa_flags = SA_NODEFER;
  for (const int number : kWatched) sigaction(number, &action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = on ? kMostCpuSeconds : 0;
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

std::string Cause(int number) {
  if (number == SIGVTALRM) return "the run does not come back";
  return StrCat("the scheduler core ended itself (signal ", number, ")");
}

}  // namespace

RunResult RunSeed(const RunOptions& options) {
  World* const world = new World(options);
  Watch(true);
  const int number = sigsetjmp(return_point, 1);
  if (number != 0) {  // the world is as the signal left it: not to be destroyed
    Watch(false);
    RunResult result;
    result.seed = options.seed;
    result.violation = Cause(number);
    return result;
  }
  RunResult result;
  try {
    result = world->Run();
  } catch (const std::exception& error) {
    result.seed = options.seed;
    result.violation = StrCat("the scheduler core threw: ", error.what());
  }
  Watch(false);
  delete world;
  return result;
}

}  // namespace patchbay::sim
