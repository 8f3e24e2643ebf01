// The share of tissue in a frame: against areas added up pixel by pixel in rationals, and edges.
#include "ops/tissue/tissue_coverage.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

TissueMask NoiseMask(std::int64_t height, std::int64_t width, std::uint64_t seed) {
  TissueMask mask;
  mask.height = height;
  mask.width = width;
  for (const std::byte b :
       NoiseBytes(static_cast<std::size_t>(height * width), DType::kUint8, seed)) {
    mask.pixels.push_back(std::to_integer<int>(b) % 3 == 0 ? 1 : 0);
  }
  return mask;
}

TissueCoverage Laid(const TissueMask& mask, std::int64_t height, std::int64_t width) {
  auto made = TissueCoverage::Create(mask, height, width);
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

std::int64_t Edge(std::int64_t at, std::int64_t mask_side, std::int64_t image_side) {
  return at * mask_side * 65'536 / image_side;  // small numbers: no overflow here
}

/// How much of mask pixel `p` lies in [from, to), in 2^-16.
std::uint64_t Overlap(std::int64_t p, std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::min((p + 1) << 16, to) - std::max(p << 16, from)));
}

TEST(TissueCoverage, AddsCoveredAreasPixelByPixel) {
  for (const auto& [h, w, height, width] :
       std::vector<std::array<std::int64_t, 4>>{{20, 30, 20, 30},
                                                {20, 30, 640, 960},
                                                {13, 17, 1'000, 999},
                                                {1, 1, 300, 300},
                                                {7, 40, 5'000, 41}}) {
    const TissueMask mask = NoiseMask(h, w, static_cast<std::uint64_t>(h));
    const TissueCoverage coverage = Laid(mask, height, width);
    std::uint64_t state = 1;
    for (int i = 0; i < 300; ++i) {
      const auto place = [&](std::int64_t side) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(side + 1));
      };
      std::int64_t top = place(height), bottom = place(height);
      std::int64_t left = place(width), right = place(width);
      if (top > bottom) std::swap(top, bottom);
      if (left > right) std::swap(left, right);
      const std::int64_t y0 = Edge(top, h, height), y1 = Edge(bottom, h, height);
      const std::int64_t x0 = Edge(left, w, width), x1 = Edge(right, w, width);
      std::uint64_t tissue = 0;
      for (std::int64_t y = 0; y < h; ++y) {
        for (std::int64_t x = 0; x < w; ++x) {
          tissue += mask.pixels[static_cast<std::size_t>(y * w + x)] * Overlap(y, y0, y1) *
                    Overlap(x, x0, x1);
        }
      }
      const TissueCoverage::Area area = coverage.Of(top, bottom, left, right);
      ASSERT_EQ(area.tissue, tissue) << h << "x" << w << " box " << top << " " << left;
      ASSERT_EQ(area.all, static_cast<std::uint64_t>((y1 - y0) * (x1 - x0)));
    }
  }
}

TEST(TissueCoverage, AWholeMaskCoversAllOfEveryFrame) {
  TissueMask mask = NoiseMask(11, 7, 1);
  std::fill(mask.pixels.begin(), mask.pixels.end(), std::uint8_t{1});
  const auto all = Laid(mask, 5'000, 3'333).Wanted({0, 38, 0, 25}, 256, 128, 1.0);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, std::vector<std::uint8_t>(38 * 25, 1));
  std::fill(mask.pixels.begin(), mask.pixels.end(), std::uint8_t{0});
  const TissueCoverage none = Laid(mask, 5'000, 3'333);
  EXPECT_EQ(*none.Wanted({0, 38, 0, 25}, 256, 128, 0.01), std::vector<std::uint8_t>(38 * 25, 0));
  EXPECT_EQ(*none.Wanted({0, 38, 0, 25}, 256, 128, 0), std::vector<std::uint8_t>(38 * 25, 1));
}

TEST(TissueCoverage, AFrameIsWantedFromExactlyItsFraction) {
  // 32 image pixels a mask pixel; the left half of the mask is tissue.
  TissueMask mask;
  mask.height = mask.width = 32;
  mask.pixels.assign(1'024, 0);
  for (std::size_t i = 0; i < 1'024; ++i) mask.pixels[i] = i % 32 < 16 ? 1 : 0;
  const TissueCoverage coverage = Laid(mask, 1'024, 1'024);
  // Frames of 256 at 0, 64, ..., 768: those at 320 and 384 straddle the edge at 512 by 3/4 and 1/2.
  const auto at = [&](double fraction) {
    return *coverage.Wanted({3, 4, 0, 13}, 256, 64, fraction);
  };
  EXPECT_EQ(at(0.5), (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(at(0.51), (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(at(0.25), (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}));
  // A part of a range gives the same bytes as the whole.
  EXPECT_EQ(*coverage.Wanted({3, 4, 5, 9}, 256, 64, 0.5), (std::vector<std::uint8_t>{1, 1, 0, 0}));
}

TEST(TissueCoverage, LargeSlidesDoNotOverflow) {
  TissueMask mask;
  mask.height = mask.width = 64;
  mask.pixels.assign(64 * 64, 1);
  constexpr std::int64_t kSide = 4'000'000;
  const TissueCoverage coverage = Laid(mask, kSide, kSide);
  const std::int64_t last = (kSide - 32) / 16;
  EXPECT_EQ(*coverage.Wanted({last, last + 1, last, last + 1}, 32, 16, 1.0),
            std::vector<std::uint8_t>{1});
  const auto all = coverage.Of(0, kSide, 0, kSide);
  EXPECT_EQ(all.tissue, std::uint64_t{64 * 64} << 32);
  EXPECT_EQ(all.all, all.tissue);
}

TEST(TissueCoverage, RefusesMasksAndFramesThatDoNotFit) {
  const TissueMask mask = NoiseMask(10, 10, 1);
  const auto refused = [](const TissueMask& m, std::int64_t height, std::int64_t width) {
    return TissueCoverage::Create(m, height, width).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused(mask, 10, 10));
  EXPECT_TRUE(refused(mask, 9, 10));
  EXPECT_TRUE(refused(mask, 10, std::int64_t{1} << 41));
  EXPECT_TRUE(refused(mask, 10, 0));
  EXPECT_TRUE(refused(mask, 10, 10 * (kMaxMaskScale + 1)));
  TissueMask broken = mask;
  broken.pixels.pop_back();
  EXPECT_TRUE(refused(broken, 100, 100));
  broken = mask;
  broken.width = -1;
  EXPECT_TRUE(refused(broken, 100, 100));

  const TissueCoverage coverage = Laid(mask, 1'000, 1'000);
  const auto bad = [&](const FrameRange& frames, std::int64_t frame, std::int64_t hop, double f) {
    return coverage.Wanted(frames, frame, hop, f).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(bad({0, 6, 0, 6}, 256, 128, 0.5));
  EXPECT_FALSE(bad({2, 2, 0, 6}, 256, 128, 0.5));
  EXPECT_TRUE(bad({0, 7, 0, 6}, 256, 128, 0.5));
  EXPECT_TRUE(bad({0, 6, -1, 6}, 256, 128, 0.5));
  EXPECT_TRUE(bad({4, 3, 0, 6}, 256, 128, 0.5));
  EXPECT_TRUE(bad({0, 1, 0, 1}, 1'001, 128, 0.5));
  EXPECT_TRUE(bad({0, 1, 0, 1}, 256, 0, 0.5));
  EXPECT_TRUE(bad({0, 1, 0, 1}, 256, 128, 1.5));
  EXPECT_TRUE(bad({0, 1, 0, 1}, 256, 128, std::nan("")));
  EXPECT_TRUE(bad({std::int64_t{1} << 62, (std::int64_t{1} << 62) + 1, 0, 1}, 256, 128, 0.5));
}

}  // namespace
}  // namespace patchbay::ops
