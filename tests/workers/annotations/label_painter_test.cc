#include "workers/annotations/label_painter.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/random.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kTileSide = 64;

/// The whole level, one class a pixel, row-major, put together from the painter's tiles.
std::vector<std::uint8_t> PaintAll(std::vector<PaintedPolygon> polygons, const Extent& level,
                                   std::uint8_t ground) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(level.Pixels())),
      tile(kTileSide * kTileSide);
  LabelPainter painter(std::move(polygons), level, kTileSide, ground);
  const Extent grid = CellsOf(level, Flat(kTileSide, kTileSide));
  for (std::int64_t r = 0; r < grid.y; ++r) {
    for (std::int64_t c = 0; c < grid.x; ++c) {
      const auto value = painter.Paint(r, c, tile.data());
      if (value) std::fill(tile.begin(), tile.end(), *value);
      for (std::int64_t y = r * kTileSide; y < std::min(level.y, (r + 1) * kTileSide); ++y) {
        for (std::int64_t x = c * kTileSide; x < std::min(level.x, (c + 1) * kTileSide); ++x) {
          out[static_cast<std::size_t>(y * level.x + x)] =
              tile[static_cast<std::size_t>((y - r * kTileSide) * kTileSide + x - c * kTileSide)];
        }
      }
    }
  }
  return out;
}

/// Crossings of the ray to the right of a pixel's centre, by the definition.
bool CentreInside(const Polygon& polygon, double x, double y) {
  bool inside = false;
  for (const Ring& ring : polygon.rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Vertex &a = ring[i], &b = ring[(i + 1) % ring.size()];
      if ((a.y > y) == (b.y > y)) continue;
      if (x < (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x) inside = !inside;
    }
  }
  return inside;
}

TEST(LabelPainter, PixelsAreThoseWhoseCentreLiesInside) {
  const Extent level = Flat(230, 310);
  std::uint64_t n = 0;
  const auto random = [&n](double low, double high) {
    const PhiloxBlock block = Draw(DrawKey{.seed = 7, .ordinal = n++}, 0);
    return low + (high - low) * block.word[0] / 4294967296.0;
  };
  for (int round = 0; round < 40; ++round) {
    const double wide = round % 10 == 9 ? 1e13 : 500;  // further than edges are exact
    Polygon polygon;
    for (int ring = 0; ring < 2; ++ring) {
      Ring one;
      for (int i = 0; i < 3 + 5 * ring; ++i)
        one.push_back({random(-wide, wide), random(-150, 400)});
      polygon.rings.push_back(one);
    }
    const auto pixels = PaintAll({{3, polygon}}, level, 255);
    for (std::int64_t y = 0; y < level.y; ++y) {
      for (std::int64_t x = 0; x < level.x; ++x) {
        const double cx = static_cast<double>(x) + 0.5, cy = static_cast<double>(y) + 0.5;
        const int want = CentreInside(polygon, cx, cy) ? 3 : 255;
        ASSERT_EQ(pixels[static_cast<std::size_t>(y * level.x + x)], want)
            << "round " << round << " at " << x << ", " << y;
      }
    }
  }
}

TEST(LabelPainter, APixelWhoseCentreIsOnAnOutlineBelongsToOneSideOfIt) {
  const Ring ring = {{10.5, 20.5}, {13.5, 20.5}, {13.5, 22.5}, {10.5, 22.5}};
  const auto pixels = PaintAll({{1, {{ring}, {}}}}, Flat(64, 64), 255);
  for (int y = 19; y < 24; ++y) {
    for (int x = 9; x < 15; ++x) {
      const bool is_inside = y >= 20 && y < 22 && x >= 10 && x < 13;
      EXPECT_EQ(pixels[static_cast<std::size_t>(y * 64 + x)], is_inside ? 1 : 255)
          << y << ", " << x;
    }
  }
}

TEST(LabelPainter, EveryValueComesOutAsItIsAndTheLastLiesOnTop) {
  const Ring square = {{0, 0}, {64, 0}, {64, 64}, {0, 64}};
  for (int v = 0; v < 256; ++v) {
    const auto value = static_cast<std::uint8_t>(v);
    const auto other = static_cast<std::uint8_t>(255 - v);
    const auto pixels =
        PaintAll({{other, {{square}, {}}}, {value, {{square}, {}}}}, Flat(64, 64), 9);
    EXPECT_TRUE(std::all_of(pixels.begin(), pixels.end(), [&](auto p) { return p == value; })) << v;
  }
}

TEST(LabelPainter, CutoutsShowWhatLiesBelow) {
  const Ring whole = {{0, 0}, {100, 0}, {100, 100}, {0, 100}};
  const Ring hole = {{20, 20}, {120, 20}, {120, 40}, {20, 40}};  // reaches out: adds nothing there
  const auto pixels = PaintAll({{1, {{whole}, {}}}, {2, {{whole}, {hole}}}}, Flat(130, 130), 255);
  const auto at = [&](int y, int x) { return pixels[static_cast<std::size_t>(y * 130 + x)]; };
  EXPECT_EQ(at(30, 30), 1);
  EXPECT_EQ(at(19, 30), 2);
  EXPECT_EQ(at(40, 30), 2);
  EXPECT_EQ(at(30, 110), 255);
  EXPECT_EQ(std::count(pixels.begin(), pixels.end(), 2), 100 * 100 - 80 * 20);
}

TEST(LabelPainter, TilesOfOneValueAreNotPainted) {
  const Ring wide = {{-10, -10}, {400, -10}, {400, 400}, {-10, 400}};
  const Ring inner = {{70, 70}, {80, 70}, {80, 80}, {70, 80}};
  LabelPainter painter({{1, {{wide}, {}}}, {2, {{wide}, {wide}}}, {3, {{inner}, {}}}},
                       Flat(320, 320), kTileSide, 255);
  std::vector<std::uint8_t> tile(kTileSide * kTileSide);
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t column = 0; column < 5; ++column) {
      std::fill(tile.begin(), tile.end(), std::uint8_t{77});
      const auto value = painter.Paint(row, column, tile.data());
      if (row == 1 && column == 1) {
        EXPECT_EQ(value, std::nullopt);
        EXPECT_EQ(std::count(tile.begin(), tile.end(), 3), 100);
        EXPECT_EQ(std::count(tile.begin(), tile.end(), 1), kTileSide * kTileSide - 100);
      } else {
        EXPECT_EQ(value, 1) << row << ", " << column;
        EXPECT_EQ(std::count(tile.begin(), tile.end(), 77), kTileSide * kTileSide);
      }
    }
  }
}

TEST(Crossings, AreFoundAndTouchingIsNone) {
  EXPECT_EQ(CrossesItself({{{{0, 0}, {4, 4}, {4, 0}, {0, 4}}}, {}}), true);
  EXPECT_EQ(CrossesItself({{{{0, 0}, {4, 0}, {4, 4}, {0, 4}}, {{1, 1}, {2, 1}, {2, 2}}}, {}}),
            false);
  EXPECT_EQ(CrossesItself({{{{0, 0}, {4, 0}, {4, 4}, {2, 0}, {0, 4}}}, {}}), false);
}

}  // namespace
}  // namespace patchbay::workers
