#include "workers/annotations/outline_tracer.h"

#include <gtest/gtest.h>

#include "runtime/core/random.h"
#include "workers/annotations/label_painter.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kHeight = 70, kWidth = 83, kPaintedSide = 64;

std::vector<TracedPolygon> TraceAll(const std::vector<std::uint8_t>& pixels) {
  OutlineTracer tracer(kWidth, 255);
  for (std::int64_t y = 0; y < kHeight; ++y) {
    EXPECT_TRUE(tracer.AddRow(pixels.data() + y * kWidth).ok());
  }
  return tracer.Finish();
}

TEST(OutlineTracer, WhatIsTracedFillsTheSamePixels) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // From noise to blobs: the larger the cells, the longer the lines.
    const auto cell = static_cast<std::int64_t>(1 + seed % 7);
    std::vector<std::uint8_t> pixels(kHeight * kWidth);
    for (std::int64_t y = 0; y < kHeight; ++y) {
      for (std::int64_t x = 0; x < kWidth; ++x) {
        const auto at = static_cast<std::uint64_t>(y / cell * kWidth + x / cell);
        const std::uint32_t draw = Draw(DrawKey{.seed = seed, .ordinal = at}, 0).word[0] % 4;
        pixels[static_cast<std::size_t>(y * kWidth + x)] =
            draw == 3 ? std::uint8_t{255} : static_cast<std::uint8_t>(draw);
      }
    }
    std::vector<PaintedPolygon> polygons;
    for (TracedPolygon& polygon : TraceAll(pixels)) {
      polygons.push_back({polygon.value, {std::move(polygon.rings), {}}});
    }
    LabelPainter painter(std::move(polygons), Flat(kHeight, kWidth), kPaintedSide, 255);
    std::vector<std::uint8_t> tile(kPaintedSide * kPaintedSide);
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto value = painter.Paint(i / 2, i % 2, tile.data());
      for (std::int64_t y = i / 2 * kPaintedSide; y < std::min(kHeight, (i / 2 + 1) * kPaintedSide);
           ++y) {
        for (std::int64_t x = i % 2 * kPaintedSide;
             x < std::min(kWidth, (i % 2 + 1) * kPaintedSide); ++x) {
          const int got = value ? *value
                                : tile[static_cast<std::size_t>(y % kPaintedSide * kPaintedSide +
                                                                x % kPaintedSide)];
          ASSERT_EQ(got, pixels[static_cast<std::size_t>(y * kWidth + x)])
              << "seed " << seed << " at " << x << ", " << y;
        }
      }
    }
  }
}

TEST(OutlineTracer, HolesBelongToTheirOutline) {
  std::vector<std::uint8_t> pixels(kHeight * kWidth, 255);
  for (std::int64_t y = 10; y < 40; ++y) {
    for (std::int64_t x = 10; x < 40; ++x) {
      const bool is_hole = y >= 20 && y < 30 && x >= 20 && x < 30;
      pixels[static_cast<std::size_t>(y * kWidth + x)] = is_hole ? 255 : 4;
    }
  }
  const auto polygons = TraceAll(pixels);
  ASSERT_EQ(polygons.size(), 1u);
  EXPECT_EQ(polygons[0].rings.size(), 2u);
  EXPECT_EQ(polygons[0].rings[0].size(), 8u);  // a square with its corners cut
}

}  // namespace
}  // namespace patchbay::workers
