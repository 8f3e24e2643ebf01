// Limits on locked memory, which hold for RDMA devices.
#include "runtime/client/memory_lock.h"

#include <gtest/gtest.h>

namespace patchbay::client {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(MemoryLockAdvice, NamesTheRingTheLimitAndWhatToRaise) {
  const std::string advice = MemoryLockAdvice(96 * kMiB, 8 * kMiB);
  for (const char* word : {"rdma", "96.0 MiB", "8.0 MiB", "ulimit -l", "LimitMEMLOCK="}) {
    EXPECT_NE(advice.find(word), std::string::npos) << advice;
  }
}

TEST(MemoryLockAdvice, IsSilentWhereTheLimitLetsTheRing) {
  EXPECT_EQ(MemoryLockAdvice(96 * kMiB, 96 * kMiB), "");
  EXPECT_EQ(MemoryLockAdvice(96 * kMiB, std::nullopt), "");
  EXPECT_NE(MemoryLockAdvice(96 * kMiB, 96 * kMiB - 1), "");
}

}  // namespace
}  // namespace patchbay::client
