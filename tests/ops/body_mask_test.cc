// The memory that BodyMask asks for. volume_oracle_test.cc shows that it finds the body.
#include "ops/zscore/body_mask.h"

#include <gtest/gtest.h>

namespace patchbay::ops {
namespace {

constexpr Extent kSize{24, 10, 12};
constexpr std::uint64_t kVoxels = 2880;

/// A block of body in air.
std::vector<std::int16_t> Block() {
  std::vector<std::int16_t> hu(kVoxels, -1000);
  for (std::int64_t z = 1; z < 23; ++z) {
    for (std::int64_t y = 2; y < 8; ++y) {
      for (std::int64_t x = 3; x < 9; ++x) {
        hu[static_cast<std::size_t>(IndexOf(kSize, {z, y, x}))] = 40;
      }
    }
  }
  return hu;
}

TEST(BodyMask, AsksForThreeBytesAVoxelThenForItsRuns) {
  std::vector<std::uint64_t> asked;
  const auto body = BodyMask(Block(), kSize, [&](std::uint64_t bytes) {
    asked.push_back(bytes);
    return absl::OkStatus();
  });
  ASSERT_TRUE(body.ok()) << body.status();
  // Rows that the ball reaches: 6 of y in the middle 20 slices, 4 in the first and the last.
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0], 3 * kVoxels);
  EXPECT_EQ(asked[1], (20 * 6 + 2 * 4) * 16 + (24 * 10 + 1) * 8);
}

TEST(BodyMask, EndsWhereMemoryIsRefused) {
  for (int refused = 0; refused < 2; ++refused) {
    int asked = 0;
    const auto body = BodyMask(Block(), kSize, [&](std::uint64_t) {
      return asked++ == refused ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsResourceExhausted(body.status())) << refused;
    EXPECT_EQ(asked, refused + 1);
  }
}

TEST(BodyMask, ReportsEverySliceAndEndsWhereItIsToldTo) {
  int calls = 0;
  const auto count = [&calls] { return ++calls, absl::OkStatus(); };
  ASSERT_TRUE(BodyMask(Block(), kSize, {}, count).ok());
  EXPECT_EQ(calls, 4 * kSize.z) << "eroded, dilated, joined, filled";
  for (int last = 1; last <= calls; last += 20) {
    int left = last;
    const auto body = BodyMask(Block(), kSize, {}, [&left] {
      return --left > 0 ? absl::OkStatus() : absl::CancelledError("enough");
    });
    EXPECT_TRUE(absl::IsCancelled(body.status())) << last;
  }
}

}  // namespace
}  // namespace patchbay::ops
