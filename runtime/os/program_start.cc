#include "runtime/os/program_start.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <unistd.h>

namespace patchbay {
namespace {

/// Allocates nothing, since memory may have run out.
[[noreturn]] void End(const char* what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
  std::fflush(stderr);
  _exit(EXIT_FAILURE);
}

[[noreturn]] void OnTerminate() {
  const std::exception_ptr thrown = std::current_exception();
  if (thrown == nullptr) std::abort();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    End("out of memory: raise the limit on it (ulimit -v, the cgroup's), or ask for less at a "
        "time");
  } catch (const std::system_error& error) {
    if (error.code().value() == EAGAIN || error.code().value() == ENOMEM) {
      End("start a thread: the limit on memory or threads is too low, or reached: raise it "
          "(ulimit -v, ulimit -u, the cgroup's)");
    }
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: an exception of an unknown kind\n", program_invocation_short_name);
  }
  std::abort();
}

}  // namespace

void ExplainTermination() { std::set_terminate(OnTerminate); }

}  // namespace patchbay
