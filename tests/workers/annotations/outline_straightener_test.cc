#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "runtime/core/random.h"
#include "workers/annotations/label_painter.h"
#include "workers/annotations/outline_tracer.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kBlobSide = 96;

/// Blobs: noise smoothed over `reach` pixels, cut at its mean.
std::vector<TracedPolygon> TraceBlobs(std::uint64_t seed, std::int64_t reach) {
  const auto noise = [seed](std::int64_t y, std::int64_t x) {
    const auto at = static_cast<std::uint64_t>((y + 64) * 1024 + x + 64);
    return static_cast<double>(Draw(DrawKey{.seed = seed, .ordinal = at}, 0).word[0]) / 4294967296;
  };
  OutlineTracer tracer(kBlobSide, 0);
  std::vector<std::uint8_t> row(kBlobSide);
  for (std::int64_t y = 0; y < kBlobSide; ++y) {
    for (std::int64_t x = 0; x < kBlobSide; ++x) {
      double sum = 0;
      for (std::int64_t i = -reach; i <= reach; ++i) {
        for (std::int64_t j = -reach; j <= reach; ++j) sum += noise(y + i, x + j) - 0.5;
      }
      row[static_cast<std::size_t>(x)] = sum > 0 ? 1 : 0;
    }
    EXPECT_TRUE(tracer.AddRow(row.data()).ok());
  }
  return tracer.Finish();
}

std::size_t VerticesOf(const TracedPolygon& polygon) {
  std::size_t count = 0;
  for (const Ring& ring : polygon.rings) count += ring.size();
  return count;
}

double DistanceTo(const Ring& ring, const Vertex& p) {
  double least = 1e300;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Vertex &a = ring[i], &b = ring[(i + 1) % ring.size()];
    const double x = b.x - a.x, y = b.y - a.y;
    const double along =
        std::clamp(((p.x - a.x) * x + (p.y - a.y) * y) / (x * x + y * y), 0.0, 1.0);
    least = std::min(least, std::hypot(p.x - a.x - along * x, p.y - a.y - along * y));
  }
  return least;
}

/// Holes lie within their outline, and in no other hole.
void ExpectNested(const TracedPolygon& polygon) {
  for (std::size_t i = 1; i < polygon.rings.size(); ++i) {
    const Ring& hole = polygon.rings[i];
    EXPECT_LT(SignedAreaOf(hole), 0);
    EXPECT_TRUE(Encloses(polygon.rings[0], hole[0]));
    for (std::size_t k = 1; k < polygon.rings.size(); ++k) {
      if (k != i) EXPECT_FALSE(Encloses(polygon.rings[k], hole[0]));
    }
  }
}

TEST(OutlineStraightener, LinesStayWithinTheToleranceAndCrossNothing) {
  std::size_t holes = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const double tolerance : {0.6, 1.5, 8.0, 1000.0}) {
      std::size_t before = 0, after = 0;
      for (const TracedPolygon& traced : TraceBlobs(seed, static_cast<std::int64_t>(seed % 4))) {
        TracedPolygon straight = traced;
        Straighten(straight, tolerance);
        ASSERT_EQ(straight.rings.size(), traced.rings.size());
        EXPECT_EQ(CrossesItself({straight.rings, {}}), false);
        EXPECT_GT(SignedAreaOf(straight.rings[0]), 0);
        ExpectNested(straight);
        for (std::size_t i = 0; i < traced.rings.size(); ++i) {
          EXPECT_GE(straight.rings[i].size(), 3u);
          for (const Vertex& v : traced.rings[i]) {
            ASSERT_LE(DistanceTo(straight.rings[i], v), tolerance + 1e-9);
          }
        }
        before += VerticesOf(traced);
        after += VerticesOf(straight);
        holes += traced.rings.size() - 1;
      }
      EXPECT_LT(after, before);
      if (tolerance > 1 && seed % 4 == 3) EXPECT_LT(5 * after, 2 * before);
    }
  }
  EXPECT_GT(holes, 100u);
}

TEST(OutlineStraightener, AStaircaseBecomesALine) {
  TracedPolygon stairs{1, {{}}};
  for (int i = 0; i < 40; ++i) {
    stairs.rings[0].push_back({i + 0.0, i + 0.0});
    stairs.rings[0].push_back({i + 1.0, i + 0.0});
  }
  stairs.rings[0].push_back({40, 40});
  stairs.rings[0].push_back({0, 40});
  Straighten(stairs, 0.75);
  EXPECT_LE(stairs.rings[0].size(), 5u);
  EXPECT_NEAR(AreaOf(stairs), 800, 45);
}

TEST(OutlineStraightener, AHoleInANarrowPartKeepsItsOutlineAroundIt) {
  // A strip of three pixels, with a hole of one, on a block: a large tolerance would cut it off.
  TracedPolygon polygon{
      1,
      {{{0, 0}, {40, 0}, {40, 18}, {60, 18}, {60, 21}, {40, 21}, {40, 40}, {0, 40}},
       {{50, 19}, {50, 20}, {51, 20}, {51, 19}}}};
  Straighten(polygon, 30);
  ExpectNested(polygon);
  EXPECT_EQ(CrossesItself({polygon.rings, {}}), false);
}

}  // namespace
}  // namespace patchbay::workers
