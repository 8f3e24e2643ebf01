// Frames, strips and units against their definitions, counted one by one.
#include "workers/jobs/spectra/grid.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

SpectraGrid MakeGrid(std::int64_t height, std::int64_t width, std::int64_t chunk_height,
                     std::int64_t chunk_width, const plan::SpectralOptions& options = {}) {
  LevelLayout level;
  level.size.y = height;
  level.size.x = width;
  level.chunk.y = chunk_height;
  level.chunk.x = chunk_width;
  return GridOf(level, options);
}

/// Grids of all sorts, small enough to count.
std::vector<SpectraGrid> SomeGrids() {
  std::mt19937 random(20);
  std::vector<SpectraGrid> grids;
  for (int i = 0; i < 60; ++i) {
    plan::SpectralOptions options;
    options.frame = 32 << (random() % 3);
    options.hop = 2 * static_cast<int>(1 + random() % static_cast<unsigned>(options.frame / 2));
    options.prefilter =
        i % 2 == 0 ? plan::SpectralPrefilter::kNone : plan::SpectralPrefilter::kGauss7;
    const auto side = [&](unsigned most) { return static_cast<std::int64_t>(1 + random() % most); };
    grids.push_back(MakeGrid(options.frame + side(900), options.frame + side(900), side(400),
                             i % 3 == 0 ? 2000 : side(400), options));
  }
  return grids;
}

std::string DescribeGrid(const SpectraGrid& g) {
  return StrCat(g.height, " x ", g.width, " tiles ", g.chunk_height, " x ", g.chunk_width,
                " frame ", g.options.frame, " hop ", g.options.hop);
}

TEST(SpectraGrid, StripsHoldEveryFrameOnce) {
  for (const SpectraGrid& grid : SomeGrids()) {
    for (const std::int64_t strip : {32, 64, 1024}) {
      std::vector<int> seen(static_cast<std::size_t>(grid.Frames()));
      std::uint64_t bytes = 0;
      for (const ops::FrameRange& frames : CutStrips(grid, strip)) {
        bytes += RawBytesOf(grid, frames, 3);
        for (std::int64_t row = frames.row_begin; row < frames.row_end; ++row) {
          for (std::int64_t c = frames.column_begin; c < frames.column_end; ++c) {
            ++seen[static_cast<std::size_t>(row * grid.columns + c)];
          }
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), grid.Frames()) << DescribeGrid(grid);
      const results::SpectraRemainder rest = RemainderOf(grid);
      EXPECT_EQ(bytes, static_cast<std::uint64_t>((grid.height - rest.bottom) *
                                                  (grid.width - rest.right) * 3));
    }
  }
}

TEST(SpectraGrid, AStripIsAtLeastEightTimesWhatWasAskedFor) {
  const SpectraGrid grid = MakeGrid(100'000, 80'000, 256, 256);
  for (const std::int64_t strip : {256, 1024, 2048}) {
    for (const ops::FrameRange& frames : CutStrips(grid, strip)) {
      EXPECT_GE(frames.row_end - frames.row_begin + 4, 8 * strip / 128);
      EXPECT_LT(frames.row_end - frames.row_begin, 16 * strip / 128);
    }
  }
}

TEST(SpectraGrid, AFewWorkersShareAMiddlingSlideEvenly) {
  const SpectraGrid grid = MakeGrid(31'200, 24'000, 240, 240);
  const std::vector<ops::FrameRange> strips = CutStrips(grid, 1024);
  ASSERT_EQ(strips.size(), 4u);
  for (const ops::FrameRange& frames : strips) {
    EXPECT_NEAR(static_cast<double>(FramesIn(frames)), static_cast<double>(grid.Frames()) / 4,
                static_cast<double>(grid.Frames()) / 50);
  }
  EXPECT_EQ(CutStrips(MakeGrid(3'000, 2'500, 240, 240), 1024).size(), 1u);
}

TEST(SpectraGrid, AFineTailCutsTheLastTwoStripsOnly) {
  const SpectraGrid grid = MakeGrid(100'000, 48'000, 240, 240);
  const std::vector<ops::FrameRange> even = CutStrips(grid, 1024);
  const std::vector<ops::FrameRange> fine = CutStrips(grid, 1024, StripTail::kFine);
  ASSERT_GT(even.size(), 4u);
  ASSERT_EQ(fine.size(), even.size() + 5);
  for (std::size_t i = 0; i + 2 < even.size(); ++i) {
    EXPECT_EQ(fine[i].row_begin, even[i].row_begin);
    EXPECT_EQ(fine[i].row_end, even[i].row_end);
  }
  std::int64_t row = even[even.size() - 2].row_begin;
  for (std::size_t i = even.size() - 2; i < fine.size(); ++i) {
    EXPECT_EQ(fine[i].row_begin, row);
    EXPECT_GT(fine[i].row_end, row);
    row = fine[i].row_end;
  }
  EXPECT_EQ(row, grid.rows);
  EXPECT_LT(4 * FramesIn(fine.back()), FramesIn(even.back()));
  const SpectraGrid small = MakeGrid(31'200, 24'000, 240, 240);
  EXPECT_EQ(CutStrips(small, 1024, StripTail::kFine).size(), CutStrips(small, 1024).size());
}

TEST(SpectraGrid, TheLargestImagesGiveFewTasksAndSmallPlanes) {
  plan::SpectralOptions rgb;
  rgb.channel = plan::SpectralChannel::kRgb;
  for (const auto& [height, width] : {std::pair{2'000'000, 100'000}, std::pair{100'000, 2'000'000},
                                      std::pair{3'000'000, 3'000'000}}) {
    for (const plan::SpectralOptions& options : {plan::SpectralOptions{}, rgb}) {
      const SpectraGrid grid = MakeGrid(height, width, 512, 512, options);
      const std::vector<ops::FrameRange> strips = CutStrips(grid, 256, StripTail::kFine);
      EXPECT_LE(strips.size() * static_cast<std::size_t>(plan::SpectralChannels(options)), 384u);
      std::int64_t frames = 0;
      for (const ops::FrameRange& strip : strips) {
        frames += FramesIn(strip);
        EXPECT_LE(PixelsOf(grid, strip).width, 131'072);
      }
      EXPECT_EQ(frames, grid.Frames());
    }
  }
}

TEST(SpectraGrid, ATinyHopDoesNotMakeTasksOfHours) {
  plan::SpectralOptions options;
  options.hop = 2;
  const SpectraGrid grid = MakeGrid(20'000, 20'000, 256, 256, options);
  for (const ops::FrameRange& strip : CutStrips(grid, 1024)) EXPECT_LT(FramesIn(strip), 1'000'000);
}

TEST(SpectraGrid, FramesTouchABoxExactlyWhenTheyNeedAPixelOfIt) {
  std::mt19937 random(3);
  for (const SpectraGrid& grid : SomeGrids()) {
    const Box box =
        Intersect(Box2D(random() % 800, random() % 800, 1 + random() % 300, 1 + random() % 300),
                  Box2D(0, 0, grid.height, grid.width));
    if (box.Empty()) continue;
    const ops::FrameRange touching = FramesTouching(grid, box);
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      for (std::int64_t column = 0; column < grid.columns; ++column) {
        const ops::FrameRange one = {row, row + 1, column, column + 1};
        const bool needs = !Intersect(PixelsOf(grid, one), box).Empty();
        EXPECT_EQ(FramesIn(Intersect(touching, one)) == 1, needs)
            << DescribeGrid(grid) << " " << box.ToString() << " frame " << row << "," << column;
      }
    }
  }
}

TEST(SpectraGrid, AFrameIsCompleteOnceItsLastPixelIsThere) {
  for (const SpectraGrid& grid : SomeGrids()) {
    for (std::int64_t edge = 1; edge <= grid.height; edge += 7) {
      std::int64_t rows = 0;
      while (rows < grid.rows) {
        const Box need = PixelsOf(grid, {rows, rows + 1, 0, 1});
        if (need.y + need.height > edge) break;
        ++rows;
      }
      EXPECT_EQ(RowsAbove(grid, edge), rows) << DescribeGrid(grid) << " edge " << edge;
    }
    EXPECT_EQ(RowsAbove(grid, grid.height), grid.rows);
    EXPECT_EQ(ColumnsBefore(grid, grid.width), grid.columns);
  }
}

TEST(SpectraGrid, UnitsHoldEveryNeededPixelOnceInWholeTiles) {
  for (const SpectraGrid& grid : SomeGrids()) {
    for (const ops::FrameRange& strip : CutStrips(grid, 64)) {
      const Box need = PixelsOf(grid, strip);
      std::int64_t covered = 0, band_y = -1, x_end = 0;
      for (const Box& unit : CutUnits(grid, strip)) {
        EXPECT_EQ(unit.y % grid.chunk_height, 0);
        EXPECT_EQ(unit.x % grid.chunk_width, 0);
        const std::int64_t bottom = unit.y + unit.height, right = unit.x + unit.width;
        EXPECT_TRUE(bottom == grid.height || bottom % grid.chunk_height == 0);
        EXPECT_TRUE(right == grid.width || right % grid.chunk_width == 0);
        EXPECT_FALSE(Intersect(unit, need).Empty());
        covered += Intersect(unit, need).Pixels();
        // Band by band from the top, each from the left: units that complete frames are last.
        EXPECT_TRUE(unit.y == band_y ? unit.x == x_end : unit.y > band_y);
        band_y = unit.y;
        x_end = right;
      }
      EXPECT_EQ(covered, need.Pixels()) << DescribeGrid(grid);
    }
  }
}

TEST(SpectraGrid, AFasterWorkerGetsLargerUnitsAndTasks) {
  LevelLayout level;
  level.size.y = level.size.x = 60'000;
  level.chunk.y = level.chunk.x = 256;
  const SpectraGrid slow = GridOf(level, {});
  const SpectraGrid fast = GridOf(level, {}, {1024, std::int64_t{1} << 23, std::int64_t{1} << 33});
  EXPECT_EQ(CutUnits(slow, slow.All())[0], Box2D(0, 0, 256, 2048));
  EXPECT_EQ(CutUnits(fast, fast.All())[0], Box2D(0, 0, 1024, 8192));
  EXPECT_LT(CutStrips(fast, 1024).size(), CutStrips(slow, 1024).size());
}

TEST(SpectraGrid, TilesOfAUnitAreThoseOfTheImage) {
  const SpectraGrid grid = MakeGrid(1000, 900, 240, 256);
  const std::vector<Box> tiles = TilesOf(grid, Box2D(720, 512, 280, 388));
  ASSERT_EQ(tiles.size(), 4u);
  EXPECT_EQ(tiles[0], Box2D(720, 512, 240, 256));
  EXPECT_EQ(tiles[3], Box2D(960, 768, 40, 132));
}

TEST(SpectraGrid, AnImageSmallerThanAFrameHasNone) {
  for (const auto& [height, width] : {std::pair{255, 1000}, std::pair{1000, 255}}) {
    const SpectraGrid grid = MakeGrid(height, width, 256, 256);
    EXPECT_EQ(grid.Frames(), 0);
    EXPECT_TRUE(CutStrips(grid, 1024).empty());
    EXPECT_EQ(RemainderOf(grid).right, width);
    EXPECT_EQ(RemainderOf(grid).bottom, height);
  }
}

}  // namespace
}  // namespace patchbay::workers
