#include <csignal>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/os/program_start.h"

namespace patchbay {
namespace {

/// On a thread of its own, where it is not caught.
template <typename Exception>
void Throw(const Exception& exception) {
  ExplainTermination();
  std::thread([&] { throw exception; }).join();
}

TEST(LastWords, WantOfMemoryOrThreadsIsSaidWithWhatToRaise) {
  const auto failed = testing::ExitedWithCode(1);
  EXPECT_EXIT(Throw(std::bad_alloc()), failed, "out of memory: raise the limit.*ulimit -v");
  EXPECT_EXIT(Throw(std::system_error(EAGAIN, std::system_category())), failed,
              "start a thread: .*ulimit -u");
}

TEST(LastWords, AnythingElseIsADefect) {
  const auto aborted = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(Throw(std::logic_error("odd")), aborted, "odd");
  EXPECT_EXIT(Throw(std::system_error(EPERM, std::system_category())), aborted, "not permitted");
}

}  // namespace
}  // namespace patchbay
