// Strips cut at any frame, with frames left out, against the whole image.
#include "workers/jobs/spectra/strip.h"

#include <random>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "tests/workers/jobs/spectra/fixtures.h"

namespace patchbay::workers {
namespace {

StatusOr<StripResult> Measure(const ImageSource& image, const SpectraSettings& settings,
                              const ops::FrameRange& frames,
                              const std::vector<std::uint8_t>& wanted = {}, int threads = 1) {
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.threads = threads;
  context.signals = &signals;
  return MeasureStrip(context, {image, settings, frames, wanted});
}

/// The rectangle cut at random places into strips, down and across.
std::vector<ops::FrameRange> CutAtRandom(const ops::FrameRange& all, std::mt19937& random) {
  const std::int64_t rows = all.row_end - all.row_begin,
                     columns = all.column_end - all.column_begin;
  if (rows * columns <= 6 || random() % 5 == 0) return {all};
  ops::FrameRange first = all, second = all;
  if (columns == 1 || (rows > 1 && random() % 2 == 0)) {
    first.row_end = second.row_begin = all.row_begin + 1 + random() % (rows - 1);
  } else {
    first.column_end = second.column_begin = all.column_begin + 1 + random() % (columns - 1);
  }
  std::vector<ops::FrameRange> cuts = CutAtRandom(first, random);
  for (const ops::FrameRange& cut : CutAtRandom(second, random)) cuts.push_back(cut);
  return cuts;
}

/// The part of a row-major byte a frame of `all`.
std::vector<std::uint8_t> PartOf(const std::vector<std::uint8_t>& wanted,
                                 const ops::FrameRange& all, const ops::FrameRange& part) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t row = part.row_begin; row < part.row_end; ++row) {
    for (std::int64_t c = part.column_begin; c < part.column_end; ++c) {
      bytes.push_back(wanted[static_cast<std::size_t>(row * all.column_end + c)]);
    }
  }
  return bytes;
}

struct Case {
  const char* settings;
  std::uint32_t width, height, tile;
  std::uint16_t samples;
};

TEST(SpectraStrip, AnyCutsAndAnyFramesLeftOutAddUpToTheWhole) {
  TemporaryFolder folder;
  const unsigned seed = 77;
  std::mt19937 random(seed);
  int n = 0;
  for (const Case& c :
       {Case{"{}", 900, 1300, 128, 3}, Case{R"({"prefilter": "gauss7"})", 777, 1000, 240, 1},
        Case{R"({"frame": 64, "hop": 24, "prefilter": "gauss7", "channel": "rgb"})", 500, 413, 48,
             3},
        Case{R"({"frame": 32, "hop": 32, "window": "hann"})", 300, 500, 512, 3},
        Case{R"({"frame": 64, "hop": 2})", 150, 140, 16, 3}}) {
    const std::string path = folder.File(StrCat(n++, ".tif"));
    ASSERT_TRUE(WriteTiff(path, {PatternImage(c.width, c.height, c.tile, c.samples)}).ok());
    const SpectraSettings settings = *ParseSpectraSettings(*ParseJson(c.settings, "settings"));
    const auto image = *OpenImage(Folders::OfThisUser(), path);
    const SpectraGrid grid = GridOf(image->layout().levels[0], settings);
    for (const bool leave_out : {false, true}) {
      std::vector<std::uint8_t> wanted;
      std::uint64_t left_out = 0;
      for (std::int64_t i = 0; leave_out && i < grid.Frames(); ++i) {
        wanted.push_back((i / 7) % 5 < 2 ? 1 : 0);
        left_out += wanted.back() == 0 ? 1 : 0;
      }
      const auto whole = WholeImageSums(path, settings, wanted);
      StripResult merged;
      merged.sums.assign(whole.size(), ops::SpectralSums(settings));
      for (const ops::FrameRange& cut : CutAtRandom(grid.All(), random)) {
        const auto part = wanted.empty() ? wanted : PartOf(wanted, grid.All(), cut);
        const auto result = Measure(*image, settings, cut, part, 1 + random() % 3);
        ASSERT_TRUE(result.ok()) << Describe(result.status());
        merged.frames_off_tissue += result->frames_off_tissue;
        for (std::size_t i = 0; i < whole.size(); ++i) {
          ASSERT_TRUE(ops::Merge(result->sums[i], merged.sums[i]).ok());
        }
      }
      EXPECT_EQ(merged.frames_off_tissue, left_out);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_TRUE(merged.sums[i] == whole[i])
            << c.settings << " channel " << i << " seed " << seed;
      }
    }
  }
}

/// Deflated tiles notice a stray byte; `pieces` are cut short.
TEST(SpectraStrip, ExactlyTheFramesOnADamagedTileAreLeftOutWhateverTheCuts) {
  TemporaryFolder folder;
  const unsigned seed = 5;
  std::mt19937 random(seed);
  CraftedImage crafted = PatternImage(700, 900, 100, 3);
  // Tiles 100 x 100, 7 columns: these two are cut off.
  for (const std::size_t n : {std::size_t{2 * 7 + 3}, std::size_t{7 * 7 + 6}})
    crafted.pieces[n].resize(10);
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {crafted}).ok());
  SpectraSettings settings = *ParseSpectraSettings(
      {{"frame", 64}, {"hop", 40}, {"prefilter", "gauss7"}, {"skip_damaged", true}});
  const auto image = *OpenImage(Folders::OfThisUser(), folder.File("a.tif"));
  const SpectraGrid grid = GridOf(image->layout().levels[0], settings);
  std::vector<std::uint8_t> wanted;
  std::uint64_t touching = 0;
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t c = 0; c < grid.columns; ++c) {
      const Box pixels = PixelsOf(grid, {row, row + 1, c, c + 1});
      const bool touches = !Intersect(pixels, Box2D(200, 300, 100, 100)).Empty() ||
                           !Intersect(pixels, Box2D(700, 600, 100, 100)).Empty();
      wanted.push_back(touches ? 0 : 1);
      touching += touches ? 1 : 0;
    }
  }
  ASSERT_GT(touching, 4u);
  // The expected sums of the undamaged frames, from the file before it was damaged.
  ASSERT_TRUE(WriteTiff(folder.File("good.tif"), {PatternImage(700, 900, 100, 3)}).ok());
  const ops::SpectralSums expected = WholeImageSums(folder.File("good.tif"), settings, wanted)[0];
  for (int run = 0; run < 6; ++run) {
    StripResult merged;
    merged.sums.assign(1, ops::SpectralSums(settings));
    for (const ops::FrameRange& cut : CutAtRandom(grid.All(), random)) {
      const auto result = Measure(*image, settings, cut, {}, 1 + run % 3);
      ASSERT_TRUE(result.ok()) << Describe(result.status());
      merged.frames_skipped += result->frames_skipped;
      ASSERT_TRUE(ops::Merge(result->sums[0], merged.sums[0]).ok());
    }
    EXPECT_EQ(merged.frames_skipped, touching) << "seed " << seed << " run " << run;
    EXPECT_TRUE(merged.sums[0] == expected) << "seed " << seed << " run " << run;
  }
  // Without skipping, the first damaged tile is named by every strip that needs it, and by no
  // other.
  settings.skip_damaged = false;
  const auto whole = Measure(*image, settings, grid.All());
  ASSERT_TRUE(whole.ok() && whole->damaged.has_value());
  EXPECT_EQ(whole->damaged->row, 2);
  EXPECT_EQ(whole->damaged->column, 3);
  const auto below = Measure(*image, settings, {8, grid.rows, 0, grid.columns});
  ASSERT_TRUE(below.ok() && below->damaged.has_value());
  EXPECT_EQ(below->damaged->row, 7);
  EXPECT_FALSE(Measure(*image, settings, {0, grid.rows, 0, 4})->damaged.has_value());
}

TEST(SpectraStrip, DamageThatNoWantedFrameTouchesIsNotSeen) {
  TemporaryFolder folder;
  CraftedImage crafted = PatternImage(700, 900, 100, 3);
  crafted.pieces[2 * 7 + 3].resize(10);
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {crafted}).ok());
  const SpectraSettings settings = *ParseSpectraSettings({{"frame", 64}, {"hop", 40}});
  const auto image = *OpenImage(Folders::OfThisUser(), folder.File("a.tif"));
  const SpectraGrid grid = GridOf(image->layout().levels[0], settings);
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(grid.Frames()), 1);
  const ops::FrameRange touching = FramesTouching(grid, Box2D(200, 300, 100, 100));
  for (std::int64_t row = touching.row_begin; row < touching.row_end; ++row) {
    for (std::int64_t c = touching.column_begin; c < touching.column_end; ++c) {
      wanted[static_cast<std::size_t>(row * grid.columns + c)] = 0;
    }
  }
  const auto result = Measure(*image, settings, grid.All(), wanted);
  ASSERT_TRUE(result.ok()) << Describe(result.status());
  EXPECT_FALSE(result->damaged.has_value());
  wanted[static_cast<std::size_t>(touching.row_begin * grid.columns + touching.column_begin)] = 1;
  EXPECT_TRUE(Measure(*image, settings, grid.All(), wanted)->damaged.has_value());
}

TEST(SpectraStrip, FramesOutsideTheImageAreRefused) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(500, 500)}).ok());
  const auto image = *OpenImage(Folders::OfThisUser(), folder.File("a.tif"));
  for (const ops::FrameRange& frames : {ops::FrameRange{0, 0, 0, 1}, ops::FrameRange{-1, 1, 0, 1},
                                        ops::FrameRange{0, 3, 0, 2}, ops::FrameRange{1, 0, 0, 1}}) {
    EXPECT_EQ(Measure(*image, {}, frames).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(SpectraStrip, ARevokedTaskStops) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(500, 500)}).ok());
  const auto image = *OpenImage(Folders::OfThisUser(), folder.File("a.tif"));
  TaskSignals signals;
  signals.cancelled = true;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.signals = &signals;
  const SpectraSettings settings;
  EXPECT_EQ(MeasureStrip(context, {*image, settings, {0, 2, 0, 2}, {}}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(SpectraStrip, ShowsProgressAtLeastEveryFewHundredFrames) {
  TemporaryFolder folder;
  const std::string path = folder.File("a.tif");
  // One tile: nothing else shows progress between the frames.
  ASSERT_TRUE(WriteTiff(path, {PatternImage(800, 512, 1024, 1)}).ok());
  const auto image = *OpenImage(Folders::OfThisUser(), path);
  const SpectraSettings settings =
      *ParseSpectraSettings(*ParseJson(R"({"frame": 256, "hop": 16})", "settings"));
  const SpectraGrid grid = GridOf(image->layout().levels[0], settings);
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.threads = 1;
  context.signals = &signals;
  ASSERT_TRUE(MeasureStrip(context, {*image, settings, grid.All(), {}}).ok());
  ASSERT_GT(grid.Frames(), 512);
  EXPECT_GT(signals.progress, static_cast<std::uint64_t>(grid.Frames() / 256 + 1));
}

}  // namespace
}  // namespace patchbay::workers
