#include "runtime/os/work_meter.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay {
namespace {

constexpr std::int64_t kWorkNs = 3'000'000;

void Work() {
  TakeSpent();
  for (std::int64_t spent = 0; spent < kWorkNs;) spent += TakeSpent().cpu_ns;
}

TEST(WorkMeter, CountsItsThreadAndItsHelpersOnce) {
  const WorkMeter meter;
  Work();
  std::thread(Metered(Work)).join();
  const std::int64_t both = meter.Read().cpu_ns;
  EXPECT_GE(both, 2 * kWorkNs);
  std::async(std::launch::deferred, Metered(Work)).get();
  const std::int64_t own = meter.Read().cpu_ns - both;
  EXPECT_GE(own, kWorkNs);
  EXPECT_LT(own, 2 * kWorkNs) << "a helper on the thread itself was counted twice";
}

TEST(WorkMeter, IsReadByOtherThreadsWhileItsThreadWorks) {
  const WorkMeter meter;
  Work();
  std::int64_t seen = 0;
  std::thread([&] { seen = meter.CpuNsSoFar(); }).join();
  EXPECT_GE(seen, kWorkNs);
  std::thread(Metered(Work)).join();
  std::thread([&] { seen = meter.CpuNsSoFar(); }).join();
  EXPECT_GE(seen, 2 * kWorkNs);
  EXPECT_LE(seen, meter.Read().cpu_ns);
}

TEST(WorkMeter, LeavesOutThreadsThatWorkForOthers) {
  const WorkMeter meter;
  std::thread(Work).join();
  EXPECT_LT(meter.Read().cpu_ns, kWorkNs);
  std::thread([] { EXPECT_EQ(WorkMeter::OfThread(), nullptr); }).join();
}

TEST(WorkMeter, CountsTheBytesThatAreRead) {
  const auto file = OpenFile(Folders::OfThisProcess(), "/proc/self/exe", O_RDONLY);
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> bytes(100);
  const WorkMeter meter;
  ASSERT_TRUE(ReadAt(file->get(), 7, bytes, "a program").ok());
  std::thread(Metered([&] { (void)ReadAt(file->get(), 0, bytes, "a program"); })).join();
  EXPECT_EQ(meter.Read().bytes_read, 200u);
}

}  // namespace
}  // namespace patchbay
