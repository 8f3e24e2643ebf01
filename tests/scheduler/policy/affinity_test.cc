#include "scheduler/policy/affinity.h"

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

TEST(Affinity, AWorkerTakesWhatItWorkedOnThenWhatNobodyDidThenWhatItsNodeDid) {
  using K = Affinity;
  const auto choose = [](std::vector<Affinity> head) { return ChooseByAffinity(head, 0); };
  EXPECT_EQ(choose({K::kElsewhere, K::kNowhere, K::kNode, K::kWorker}), 3u);
  EXPECT_EQ(choose({K::kElsewhere, K::kNode, K::kNowhere}), 2u);
  EXPECT_EQ(choose({K::kElsewhere, K::kNode, K::kElsewhere}), 1u);
  EXPECT_EQ(choose({K::kElsewhere, K::kElsewhere}), 0u) << "it is never left without work";
  EXPECT_EQ(choose({K::kWorker, K::kWorker}), 0u) << "among equals the first";
  EXPECT_EQ(choose({}), 0u);
}

TEST(Affinity, TheFirstIsNotSkippedForEver) {
  const std::vector<Affinity> head = {Affinity::kElsewhere, Affinity::kWorker};
  EXPECT_EQ(ChooseByAffinity(head, kMaxSkips - 1), 1u);
  EXPECT_EQ(ChooseByAffinity(head, kMaxSkips), 0u);
}

TEST(Affinity, AWarmWorkerTakesMoreOnlyWhileEnoughIsLeftForTheOthers) {
  EXPECT_TRUE(StaysEven(0, {}, 1));
  EXPECT_TRUE(StaysEven(1, {}, 1)) << "nobody holds less";
  const std::uint32_t idle[] = {0};
  EXPECT_FALSE(StaysEven(1, idle, 1)) << "the only one that waits goes to the idle worker";
  EXPECT_TRUE(StaysEven(1, idle, 2));
  const std::uint32_t two_idle[] = {0, 0, 1};
  EXPECT_FALSE(StaysEven(2, two_idle, 5));
  EXPECT_TRUE(StaysEven(2, two_idle, 6));
}

}  // namespace
}  // namespace patchbay::scheduler
