// Peers that a listener turned away are named, counted, and bounded.
#include "runtime/os/dropped_peers.h"

#include "gtest/gtest.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

TEST(DroppedPeers, CountConnectionsOfOneHostAndReasonTogether) {
  DroppedPeers peers;
  for (int port = 1; port <= 3; ++port) peers.Count(StrCat("10.0.0.7:", port), "no key");
  peers.Count("[fd00::1]:9", "no key");
  peers.Count("10.0.0.7:1", "no key");
  EXPECT_EQ(peers.Count("10.0.0.7:1", "too late"), 6u);
  const auto list = peers.List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].address, "10.0.0.7");
  EXPECT_EQ(list[0].reason, "no key");
  EXPECT_EQ(list[0].times, 4u);
  EXPECT_GT(list[0].last_at, 1'500'000'000);
  EXPECT_EQ(list[1].address, "fd00::1");
  EXPECT_EQ(list[2].reason, "too late");
}

TEST(DroppedPeers, KeepsWhatHasNoPortAsItIs) {
  DroppedPeers peers;
  peers.Count("a peer that is gone", "no key");
  EXPECT_EQ(peers.List().at(0).address, "a peer that is gone");
}

TEST(DroppedPeers, AreARowForManyOnceTheListIsFull) {
  DroppedPeers peers;
  constexpr std::uint64_t kMany = 1000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    peers.Count(StrCat("[fd00::", i % 10, i / 10, "]:5"), "no key");
  }
  const auto list = peers.List();
  ASSERT_EQ(list.size(), kMaxPeersNamed + 1);
  EXPECT_EQ(list[0].address, "other addresses");
  EXPECT_EQ(list[0].times, kMany - kMaxPeersNamed);
  EXPECT_EQ(peers.total(), kMany);
}

}  // namespace
}  // namespace patchbay
