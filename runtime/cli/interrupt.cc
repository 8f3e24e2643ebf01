#include "runtime/cli/interrupt.h"

#include <cerrno>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace patchbay::cli {
namespace {

constexpr int kExitBySignal = 128;

volatile sig_atomic_t signals_seen = 0;
/// Readable from the first signal on: a wait that begins just then ends, too, whichever thread took
/// the signal. -1 where there was no descriptor.
volatile sig_atomic_t seen_fd = -1;

void OnSignal(int number) {
  if (signals_seen > 0) _exit(kExitBySignal + number);
  signals_seen = 1;
  const int error = errno;
  (void)eventfd_write(seen_fd, 1);
  errno = error;
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
  seen_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Set(OnSignal);
}

InterruptScope::~InterruptScope() {
  Set(SIG_DFL);
  if (seen_fd >= 0) close(seen_fd);
  seen_fd = -1;
}

bool Interrupted() { return signals_seen != 0; }

void PauseMs(long milliseconds) {
  pollfd wait{seen_fd, POLLIN, 0};  // a negative descriptor is skipped
  if (!Interrupted()) poll(&wait, 1, static_cast<int>(milliseconds));
}

}  // namespace patchbay::cli
