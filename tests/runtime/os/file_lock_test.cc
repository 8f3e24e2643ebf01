// The lock of an open file: one holder at a time, and waits are bounded and reported.
#include "runtime/os/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

using std::chrono::milliseconds;

/// Two descriptors of one file that share no lock: each has an opening of its own.
class FileLock : public testing::Test {
 protected:
  UniqueFd Opened() const {
    return *OpenFile(Folders::OfThisUser(), StrCat("/proc/self/fd/", file_.get()), O_RDWR);
  }

 private:
  const UniqueFd file_{memfd_create("lock", MFD_CLOEXEC)};
};

TEST_F(FileLock, IsHeldByOneUntilItsFileIsClosed) {
  UniqueFd first = Opened();
  const UniqueFd second = Opened();
  ASSERT_TRUE(LockFile(first.get(), milliseconds(1000)).ok());
  const Status refused = LockFile(second.get(), milliseconds(20));
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  first.Close();
  EXPECT_TRUE(LockFile(second.get(), milliseconds(1000)).ok());
}

TEST_F(FileLock, ComesToWhoeverWaitsWhenItIsLetGo) {
  UniqueFd first = Opened();
  const UniqueFd second = Opened();
  ASSERT_TRUE(LockFile(first.get(), milliseconds(1000)).ok());
  int asked = 0;
  const Status locked = LockFile(second.get(), milliseconds(60'000), [&] {
    if (++asked == 2) first.Close();
    return absl::OkStatus();
  });
  EXPECT_TRUE(locked.ok()) << locked;
  EXPECT_EQ(asked, 2);
}

TEST_F(FileLock, IsNotWaitedForAfterTheWaiterGaveUp) {
  const UniqueFd first = Opened(), second = Opened();
  ASSERT_TRUE(LockFile(first.get(), milliseconds(1000)).ok());
  const Status stopped =
      LockFile(second.get(), milliseconds(60'000), [] { return absl::CancelledError("stopped"); });
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
}

TEST_F(FileLock, OfAFileWithoutLocksIsNotWaitedFor) {
  EXPECT_TRUE(LockFile(-1, milliseconds(60'000)).ok());
}

}  // namespace
}  // namespace patchbay
