#include "runtime/model/stream/image_runs.h"

#include <gtest/gtest.h>

#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

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

TEST(ImageRuns, AreWhatImagesOfAnyLengthMake) {
  const ImageRuns runs = ImageRuns::OfCounts({5, 5, 0, 1, 3, 3});
  EXPECT_EQ(runs.runs(), (std::vector<ImageRuns::Run>{{5, 2}, {1, 1}, {3, 2}}));
  EXPECT_TRUE(ImageRuns::OfCounts({}).empty());
}

TEST(ImageRuns, OfVeryManyImagesNeighboursCountAsOne) {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t i = 0; i < 2 * kMaxImageRuns + 1; ++i)
    counts.push_back(i % 2 == 0 ? i + 1 : 1);
  const ImageRuns runs = ImageRuns::OfCounts(counts);
  EXPECT_LE(runs.runs().size(), kMaxImageRuns);
  EXPECT_EQ(runs.ImageOf(0), 0u);
  EXPECT_EQ(runs.ImageOf(2), 0u) << "4 images of 1, 1, 3 and 1 patches are one";
  std::uint64_t patches = 0;
  for (const auto& run : runs.runs()) patches += run.patches_per_image * run.images;
  std::uint64_t expected = 0;
  for (const std::uint64_t count : counts) expected += count;
  EXPECT_EQ(patches, expected);
}

}  // namespace
}  // namespace patchbay
