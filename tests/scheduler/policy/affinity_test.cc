#include "scheduler/policy/affinity.h"

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

TEST(Affinity, AWorkerTakesWhatItWorkedOnThenWhatNobodyDidThenWhatItsNodeDid) {
  using K = Kinship;
  const auto choose = [](std::vector<Kinship> head) { return ChooseKin(head, 0); };
  EXPECT_EQ(choose({K::kElsewhere, K::kNowhere, K::kNode, K::kWorker}), 3u);
  EXPECT_EQ(choose({K::kElsewhere, K::kNode, K::kNowhere}), 2u);
  EXPECT_EQ(choose({K::kElsewhere, K::kNode, K::kElsewhere}), 1u);
  EXPECT_EQ(choose({K::kElsewhere, K::kElsewhere}), 0u) << "it is never left without work";
  EXPECT_EQ(choose({K::kWorker, K::kWorker}), 0u) << "among equals the first";
  EXPECT_EQ(choose({}), 0u);
}

TEST(Affinity, TheFirstIsNotPassedOverForEver) {
  const std::vector<Kinship> head = {Kinship::kElsewhere, Kinship::kWorker};
  EXPECT_EQ(ChooseKin(head, kMaxPassedOver - 1), 1u);
  EXPECT_EQ(ChooseKin(head, kMaxPassedOver), 0u);
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

TEST(ImageRuns, NameTheImageOfEveryPatch) {
  const ImageRuns::Run runs[] = {{5, 2}, {1, 1}, {3, 2}};
  const auto table = ImageRuns::Of(runs, 17);
  ASSERT_TRUE(table.ok());
  const std::uint64_t images[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3, 3, 3, 4, 4, 4};
  for (std::uint64_t i = 0; i < 17; ++i) EXPECT_EQ(table->ImageOf(i), images[i]) << i;
  EXPECT_FALSE(table->ImageOf(17).has_value());
  EXPECT_FALSE(ImageRuns().ImageOf(0).has_value());
}

TEST(ImageRuns, RefuseWhatDoesNotAddUp) {
  const auto refused = [](std::vector<ImageRuns::Run> runs, std::uint64_t patches) {
    return absl::IsInvalidArgument(ImageRuns::Of(runs, patches).status());
  };
  EXPECT_TRUE(refused({{5, 2}}, 9));
  EXPECT_TRUE(refused({{5, 2}}, 11));
  EXPECT_TRUE(refused({{0, 2}}, 0));
  EXPECT_TRUE(refused({{2, 0}}, 0));
  EXPECT_TRUE(refused({{1ull << 63, 2}}, 0)) << "the product would not fit";
  EXPECT_TRUE(refused(std::vector<ImageRuns::Run>(kMaxImageRuns + 1, {1, 1}), kMaxImageRuns + 1));
}

}  // namespace
}  // namespace patchbay::scheduler
