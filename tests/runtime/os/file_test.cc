// Whole reads and writes of files that end, or may not grow.
#include "runtime/os/file.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "runtime/core/hash.h"

namespace patchbay {
namespace {

TEST(WriteAt, GoesOnBehindWhatALimitLetThroughAndFailsThere) {
  const UniqueFd fd(memfd_create("limited", 0));
  ASSERT_TRUE(WriteAt(fd.get(), 0, AsBytes("0123456789"), "limited").ok());
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const struct rlimit limited { 8, before.rlim_max };
  setrlimit(RLIMIT_FSIZE, &limited);
  const Status written = WriteAt(fd.get(), 2, AsBytes("abcdefghij"), "limited");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsResourceExhausted(written)) << written;
  std::string found(10, '\0');
  ASSERT_TRUE(ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(found)), "limited").ok());
  EXPECT_EQ(found, "01abcdef89");
}

TEST(ReadAt, SaysWhereAFileEndsTooEarly) {
  const UniqueFd fd(memfd_create("short", 0));
  ASSERT_TRUE(WriteAt(fd.get(), 0, AsBytes("0123456789"), "short").ok());
  std::string found(5, '\0');
  const Status read = ReadAt(fd.get(), 7, std::as_writable_bytes(std::span(found)), "short");
  EXPECT_EQ(MessageOf(read), "read: short: ends at byte 10, 2 bytes short");
  EXPECT_EQ(found.substr(0, 3), "789");
}

}  // namespace
}  // namespace patchbay
