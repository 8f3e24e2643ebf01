#include "runtime/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace patchbay::cli {
namespace {

constexpr int kExitBySignal = 128;

volatile sig_atomic_t signals_seen = 0;

void OnSignal(int number) {
  if (signals_seen > 0) _exit(kExitBySignal + number);
  signals_seen = 1;
}

void Set(void (*action)(int)) {
  struct sigaction change {};
  change.sa_handler = action;
  sigemptyset(&change.sa_mask);
  sigaction(SIGINT, &change, nullptr);
  sigaction(SIGTERM, &change, nullptr);
}

}  // namespace

InterruptScope::InterruptScope() {
  signals_seen = 0;
  Set(OnSignal);
}

InterruptScope::~InterruptScope() { Set(SIG_DFL); }

bool Interrupted() { return signals_seen != 0; }

void PauseMs(long milliseconds) {
  if (!Interrupted()) poll(nullptr, 0, static_cast<int>(milliseconds));
}

}  // namespace patchbay::cli
