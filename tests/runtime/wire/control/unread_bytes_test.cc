// A peer that reads nothing is found by what its socket still holds.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/os/file.h"
#include "runtime/wire/control/admission.h"

namespace patchbay::control {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Line {
  Line() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  void Stuff() {
    const std::string bytes(64 << 10, 'x');
    while (send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  }
  void Read() {
    std::string bytes(64 << 10, 'x');
    while (recv(theirs.get(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }
  UniqueFd ours, theirs;
};

TEST(UnreadBytes, WhoReadsIsNeverCut) {
  Line line;
  UnreadBytes unread(8 * kMiB);
  for (int i = 0; i < 100; ++i) {
    line.Stuff();
    line.Read();
    EXPECT_EQ(unread.Add(1, line.ours.get(), kMiB), 0u);
  }
  EXPECT_LE(unread.total(), UnreadBytes::kLookBytes);
}

TEST(UnreadBytes, OfSeveralTheOneThatHasReadLeastIsCut) {
  Line reads, slow, stuck;
  slow.Stuff();
  stuck.Stuff();
  UnreadBytes unread(8 * kMiB);
  EXPECT_EQ(unread.Add(1, slow.ours.get(), 2 * kMiB), 0u);
  EXPECT_EQ(unread.Add(2, stuck.ours.get(), 6 * kMiB), 0u);
  EXPECT_EQ(unread.total(), 8 * kMiB) << "the limit itself fits";
  EXPECT_EQ(unread.Add(3, reads.ours.get(), kMiB), 0u) << "it has read it already";
  EXPECT_EQ(unread.Add(1, slow.ours.get(), 1), 2u);
  unread.Forget(2);
  EXPECT_EQ(unread.Add(3, reads.ours.get(), 1), 0u);
  slow.Read();
  EXPECT_EQ(unread.Add(1, slow.ours.get(), 1), 0u);
  EXPECT_LE(unread.total(), 2u) << "it caught up";
}

TEST(UnreadBytes, ManyIdleOnesThatHaveReadCutNobody) {
  Line line;
  UnreadBytes unread(8 * kMiB);
  for (std::uint64_t peer = 1; peer <= 64; ++peer) {
    EXPECT_EQ(unread.Add(peer, line.ours.get(), kMiB), 0u) << peer;
  }
}

}  // namespace
}  // namespace patchbay::control
