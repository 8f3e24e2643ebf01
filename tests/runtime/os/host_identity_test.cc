// The processes that count as being on one node.
#include "runtime/os/host_identity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay {
namespace {

TEST(HostIdentity, IsTheSameEveryTime) {
  const StatusOr<std::string> first = HostIdentity();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, *HostIdentity());
  EXPECT_GT(first->size(), 37u);
}

TEST(HostIdentity, TellsUsersOfAMachineFromMachines) {
  const std::string here = *HostIdentity();
  EXPECT_FALSE(DifferInUserOnly(here, here));
  EXPECT_TRUE(DifferInUserOnly(here, here + "0"));
  EXPECT_FALSE(DifferInUserOnly(here, "1" + here + "0"));
  EXPECT_TRUE(DifferInUserOnly("host-user1", "host-user22"));
  EXPECT_FALSE(DifferInUserOnly("host-user1", "tsoh-user2"));
  EXPECT_FALSE(DifferInUserOnly("host-1", "host-2"));
  EXPECT_FALSE(DifferInUserOnly("", "host-user1"));
}

TEST(HostIdentity, DiffersForAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs the right to become another user";
  const std::string here = *HostIdentity();
  ASSERT_EQ(seteuid(12345), 0);
  const StatusOr<std::string> there = HostIdentity();
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_TRUE(DifferInUserOnly(here, *there)) << here << " " << *there;
}

void ExpectDiffersBehind(int namespace_flag) {
  const std::string here = *HostIdentity();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(namespace_flag) != 0) _exit(77);
    if (const pid_t inner = fork(); inner != 0) {
      waitpid(inner, nullptr, 0);
      _exit(0);
    }
    const StatusOr<std::string> there = HostIdentity();
    const std::string text = there.ok() ? *there : "";
    _exit(write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  int wait_status = 0;
  waitpid(outer, &wait_status, 0);
  char text[256];
  const ssize_t got = read(ends[0], text, sizeof(text));
  close(ends[0]);
  if (WEXITSTATUS(wait_status) == 77) GTEST_SKIP() << "needs the right to make a namespace";
  ASSERT_GT(got, 0);
  EXPECT_NE(here, std::string(text, static_cast<std::size_t>(got)));
}

TEST(HostIdentity, DiffersInAnotherPidNamespace) { ExpectDiffersBehind(CLONE_NEWPID); }

TEST(HostIdentity, DiffersInAnotherNetworkNamespace) { ExpectDiffersBehind(CLONE_NEWNET); }

}  // namespace
}  // namespace patchbay
